//! Headings of Markdown. The text stays as it is, because models read Markdown.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::{Extracted, Heading};

pub(super) fn extract(text: &str) -> Extracted {
    let mut headings: Vec<Heading> = Vec::new();
    let (mut open, mut front_matter, mut named) = (false, false, None);
    let options = Options::ENABLE_YAML_STYLE_METADATA_BLOCKS | Options::ENABLE_TABLES;
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                open = true;
                let at = text.get(..range.start).and_then(|head| head.rfind('\n')).map_or(0, |end| end + 1);
                headings.push(Heading { at, end: range.end, level: number(level), text: String::new() });
            }
            Event::End(TagEnd::Heading(_)) => open = false,
            Event::Start(Tag::MetadataBlock(_)) => front_matter = true,
            Event::End(TagEnd::MetadataBlock(_)) => front_matter = false,
            Event::Text(words) if front_matter => named = front_matter_title(&words),
            Event::Text(words) | Event::Code(words) if open => {
                if let Some(heading) = headings.last_mut() {
                    heading.text.push_str(&words);
                }
            }
            _ => {}
        }
    }
    let first = headings.iter().find(|heading| heading.level == 1).map(|heading| heading.text.clone());
    Extracted { title: named.or(first), text: text.to_owned(), headings }
}

fn front_matter_title(block: &str) -> Option<String> {
    let value = block.lines().find_map(|line| line.strip_prefix("title:"))?;
    let title = value.trim().trim_matches(['"', '\'']);
    (!title.is_empty()).then(|| title.to_owned())
}

const fn number(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}
