use super::*;

const PAGE: &str = "\
# A page
```sh
one
```
<!-- runs on: laptop -->
```sh
two &
three
four
```

    five

```yaml
no: command
```
### Below
```console
$ six \\
  six
said
$ cat > file <<'EOF'
text
EOF
```
<!-- not run: needs a cloud -->
```bash
seven
```
## Next
<!-- checked by: blackbox::compose -->
```console
$ eight
...
```
";

fn step(command: &str, output: &str) -> Step {
    Step { command: command.to_owned(), output: output.to_owned() }
}

#[test]
fn a_comment_applies_until_the_next_one_or_a_heading() {
    let places: Vec<_> = all_blocks(PAGE).into_iter().map(|block| (block.line, block.place)).collect();
    let not_run = Place::NotRun("needs a cloud".to_owned());
    let checked = Place::CheckedBy("blackbox::compose".to_owned());
    assert_eq!(
        places,
        [
            (2, None),
            (6, Some(Place::Laptop)),
            (12, Some(Place::Laptop)),
            (18, Some(Place::Laptop)),
            (27, Some(not_run)),
            (32, Some(checked))
        ]
    );
}

#[test]
fn a_block_without_a_comment_is_an_error() {
    let error = blocks(PAGE, &Place::Laptop).unwrap_err().to_string();
    assert!(error.contains("[2]"), "{error}");
}

#[test]
fn the_commands_of_a_place_are_in_order() {
    let page = PAGE.replacen("```sh\none\n```\n", "", 1);
    assert_eq!(
        blocks(&page, &Place::Laptop).unwrap(),
        [
            step("two &", "...\n"),
            step("three\nfour", "...\n"),
            step("five", "...\n"),
            step("six \\\n  six", "said\n"),
            step("cat > file <<'EOF'\ntext\nEOF", ""),
        ]
    );
    assert_eq!(blocks(&page, &Place::Node).unwrap(), []);
}
