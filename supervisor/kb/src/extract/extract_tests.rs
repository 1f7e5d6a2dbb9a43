use lopdf::content::{Content, Operation};
use lopdf::{Document, Object, Stream, dictionary};
use proptest::prelude::*;

use super::*;

fn read(form: Form, bytes: &[u8]) -> Result<Extracted, String> {
    extract(form, bytes, &PdfReader::new("/bin/false".into(), &[]))
}

fn headings(document: &Extracted) -> Vec<(u8, &str)> {
    document.headings.iter().map(|heading| (heading.level, heading.text.as_str())).collect()
}

#[test]
fn names_and_media_types_show_the_form() {
    for (name, expected) in [
        ("a/README.MD", Some(Form::Markdown)),
        ("x.html", Some(Form::Html)),
        ("x.pdf", Some(Form::Pdf)),
        ("x.rst", Some(Form::Plain)),
        ("x.png", None),
        ("Makefile", None),
    ] {
        assert_eq!(Form::of_name(name), expected, "{name}");
    }
    assert_eq!(Form::of_media_type("Text/HTML; charset=utf-8"), Some(Form::Html));
    assert_eq!(Form::of_media_type("application/json"), None);
}

#[test]
fn markdown_stays_as_it_is_and_has_a_title() {
    let text =
        "---\ntitle: \"From front matter\"\n---\n\nTop\n===\n\nText with `code`.\n\n### The `x` flag\n";
    let document = read(Form::Markdown, text.as_bytes()).unwrap();
    assert_eq!(document.text, text);
    assert_eq!(document.title.as_deref(), Some("From front matter"));
    assert_eq!(headings(&document), [(1, "Top"), (3, "The x flag")]);
    let plain = read(Form::Markdown, b"\xef\xbb\xbf# A\n").unwrap();
    assert_eq!((plain.title.as_deref(), plain.text.as_str()), (Some("A"), "# A\n"));
}

#[test]
fn html_becomes_text_with_headings() {
    let page = r#"<!doctype html><html><head><title>Deploy &amp; run</title><style>p { color: red }</style>
        <script>if (a < b) { document.write("<p>no</p>") }</script></head>
        <body><nav><a href="/">Start</a></nav><main><h1>Deploy</h1><p>Use <b>two</b>
        replicas&nbsp;&mdash; always.<h2 title="a > b">Steps</h2><ul><li>one<li>two</ul>
        <pre>kubectl get pods
  -n x</pre><table><tr><th>A<th>B<tr><td>1<td>2</table></main><footer>2026</footer></body></html>"#;
    let document = read(Form::Html, page.as_bytes()).unwrap();
    assert_eq!(document.title.as_deref(), Some("Deploy & run"));
    assert_eq!(headings(&document), [(1, "Deploy"), (2, "Steps")]);
    let expected = "# Deploy\n\nUse two replicas — always.\n\n## Steps\n\n- one\n- two\n\nkubectl get pods\n  -n x\n\n\
                    A | B\n1 | 2";
    assert_eq!(document.text, expected);
}

#[test]
fn html_without_an_end_of_its_navigation_is_read() {
    let document = read(Form::Html, b"<nav><h1>Title</h1><p>All the text").unwrap();
    assert_eq!(document.text, "# Title\n\nAll the text");
}

#[test]
fn what_is_no_text_is_refused() {
    assert_eq!(read(Form::Plain, b"\xff\xfe\x00").unwrap_err(), "it is not UTF-8 text");
    assert!(read(Form::Pdf, b"%PDF-").unwrap_err().contains("too much memory or time"), "the process failed");
    assert!(pdf::text(b"%PDF-1.7 nonsense", 1 << 20).unwrap_err().contains("not a PDF file"));
}

fn pdf_file(pages: &[&str]) -> Vec<u8> {
    let mut document = Document::with_version("1.5");
    let tree = document.new_object_id();
    let font =
        document.add_object(dictionary! {"Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Helvetica"});
    let resources = document.add_object(dictionary! {"Font" => dictionary! {"F1" => font}});
    let mut page = |text: &str| {
        let operation = |name: &str, operands: Vec<Object>| Operation::new(name, operands);
        let operations = vec![
            operation("BT", vec![]),
            operation("Tf", vec!["F1".into(), 12.into()]),
            operation("Tj", vec![Object::string_literal(text)]),
            operation("ET", vec![]),
        ];
        let mut stream = Stream::new(dictionary! {}, Content { operations }.encode().unwrap());
        stream.compress().unwrap();
        let content = document.add_object(stream);
        let page =
            dictionary! {"Type" => "Page", "Parent" => tree, "Contents" => content, "Resources" => resources};
        Object::from(document.add_object(page))
    };
    let kids: Vec<Object> = pages.iter().map(|text| page(text)).collect();
    let count = i64::try_from(kids.len()).unwrap();
    document.objects.insert(tree, dictionary! {"Type" => "Pages", "Kids" => kids, "Count" => count}.into());
    let catalog = document.add_object(dictionary! {"Type" => "Catalog", "Pages" => tree});
    document.trailer.set("Root", catalog);
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_pdf_file_has_the_text_of_its_pages() {
    let text = pdf::text(&pdf_file(&["Restart the broker first.", "Then the clients."]), 1 << 20).unwrap();
    assert_eq!(text, "Restart the broker first.\n\nThen the clients.");
    assert!(pdf::text(&pdf_file(&[""]), 1 << 20).unwrap_err().contains("no text"));
}

#[test]
fn a_page_that_becomes_too_large_is_left_out() {
    let bomb = "x".repeat(100_000);
    let file = pdf_file(&[&bomb, "Small."]);
    assert!(file.len() < 10_000, "it is compressed: {} bytes", file.len());
    assert_eq!(pdf::text(&file, 50_000).unwrap(), "Small.");
}

proptest! {
    /// Headings of any page lie in its text, in order.
    #[test]
    fn any_html_is_read(page in "(<(/?(h[1-6]|p|nav|title|pre|script|td|li|svg)( a=\"[>x]\")?/?)>|[a-b<>&; é\n]{0,4}){0,30}") {
        let document = read(Form::Html, page.as_bytes()).unwrap();
        let mut end = 0;
        for heading in &document.headings {
            prop_assert!(end <= heading.at && heading.at <= heading.end && document.text.get(heading.at..heading.end).is_some());
            end = heading.at;
        }
    }
}
