//! A small Markdown reader for headings, paragraphs and lists.

/// A document by its headings.
#[derive(Debug)]
pub(super) struct Outline<'a> {
    /// What comes before the first heading; its heading is empty.
    sections: Vec<Section<'a>>,
}

/// A heading and the lines up to the next one of any level.
#[derive(Debug, Default)]
struct Section<'a> {
    level: usize,
    heading: &'a str,
    lines: Vec<&'a str>,
}

impl<'a> Outline<'a> {
    /// The outline of a document. A fenced block contains no headings.
    pub(super) fn of(text: &'a str) -> Self {
        let (mut sections, mut fence) = (vec![Section::default()], None);
        for line in text.lines() {
            let marker = fence_marker(line);
            match (fence, marker) {
                (None, Some(_)) => fence = marker,
                (Some(open), Some(close)) if open == close => fence = None,
                _ => {}
            }
            let inside = fence.is_some() || marker.is_some();
            match heading(line).filter(|_| !inside) {
                Some((level, heading)) => sections.push(Section { level, heading, lines: Vec::new() }),
                None => {
                    if let Some(section) = sections.last_mut() {
                        section.lines.push(if inside { "" } else { line });
                    }
                }
            }
        }
        Self { sections }
    }

    /// The first heading.
    pub(super) fn title(&self) -> Option<&'a str> {
        self.sections.get(1).map(|section| section.heading)
    }

    /// The first paragraph, on one line.
    pub(super) fn description(&self) -> Option<String> {
        self.sections.iter().find_map(|section| section.paragraph(|line| item(line).is_none()))
    }

    /// The skills, each with name and description: the entries of the section `## Skills`, or else every section of the
    /// second level with a text.
    pub(super) fn skills(&self) -> Vec<(&'a str, String)> {
        let entries = self.entries();
        if entries.is_empty() { self.topics() } else { entries }
    }

    fn entries(&self) -> Vec<(&'a str, String)> {
        let named =
            |section: &Section<'_>| section.level == 2 && section.heading.eq_ignore_ascii_case("skills");
        let Some(place) = self.sections.iter().position(named) else { return Vec::new() };
        let (section, after) = (&self.sections[place], &self.sections[place + 1..]);
        let below = after.iter().take_while(|section| section.level > 2);
        let headed: Vec<_> =
            below.filter(|section| section.level == 3).map(|it| (it.heading, it.start())).collect();
        if headed.is_empty() { section.lines.iter().filter_map(|line| entry(line)).collect() } else { headed }
    }

    fn topics(&self) -> Vec<(&'a str, String)> {
        // The first heading is the title, whatever its level.
        let topics = self.sections.iter().enumerate().skip(2).filter(|(_, section)| section.level == 2);
        let described = topics.map(|(place, section)| {
            let below = self.sections[place + 1..].iter().take_while(|section| section.level > 2);
            let start =
                std::iter::once(section).chain(below).map(Section::start).find(|text| !text.is_empty());
            (section.heading, start)
        });
        described.filter_map(|(heading, start)| Some((heading, start?))).collect()
    }
}

impl Section<'_> {
    /// The first paragraph or list, on one line; empty without any.
    fn start(&self) -> String {
        self.paragraph(|_| true).unwrap_or_default()
    }

    /// The first block of lines that match, on one line.
    fn paragraph(&self, matches_kind: impl Fn(&str) -> bool) -> Option<String> {
        let has_text = |line: &&&str| !line.trim().is_empty() && !line.trim_start().starts_with("<!--");
        let begin = self.lines.iter().position(|line| has_text(&line) && matches_kind(line))?;
        let lines = self.lines[begin..].iter().take_while(|line| has_text(line) && matches_kind(line));
        Some(lines.map(|line| plain(item(line).unwrap_or(line))).collect::<Vec<_>>().join(" "))
    }
}

/// `# Heading` and its level, without closing `#` characters.
fn heading(line: &str) -> Option<(usize, &str)> {
    let line = line.strip_prefix("   ").or_else(|| line.strip_prefix("  ")).unwrap_or(line);
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    let text = rest.trim().trim_end_matches('#').trim_end();
    ((1..=6).contains(&level) && rest.starts_with([' ', '\t']) && !text.is_empty()).then_some((level, text))
}

/// The character of a line that begins or ends a fenced block.
fn fence_marker(line: &str) -> Option<char> {
    let line = line.trim_start();
    ['`', '~'].into_iter().find(|sign| line.chars().take_while(|c| c == sign).count() >= 3)
}

/// The text of a line of a list.
fn item(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = line
        .strip_prefix(['-', '*', '+'])
        .or_else(|| numbered.strip_prefix(['.', ')']).filter(|_| numbered.len() < line.len()))?;
    rest.strip_prefix([' ', '\t']).map(str::trim)
}

/// `- Name: description` of a list that is not nested, with any of the usual separators.
fn entry(line: &str) -> Option<(&str, String)> {
    if line.starts_with("  ") || line.starts_with('\t') {
        return None;
    }
    let text = item(line)?;
    let between = [": ", " - ", " – ", " — "];
    let cut = between.iter().filter_map(|sign| Some((text.find(sign)?, sign.len()))).min();
    let (name, description) = cut.map_or((text, ""), |(at, long)| (&text[..at], &text[at + long..]));
    (!plain(name).is_empty()).then(|| (name, plain(description)))
}

/// The text without markup for emphasis, code and links.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find('[') {
        let (before, link) = rest.split_at(begin);
        out.push_str(before);
        let parts = link.split_once("](").and_then(|(name, after)| Some((name, after.split_once(')')?)));
        let (shown, after) = parts.map_or(("[", &link[1..]), |(name, (_, after))| (&name[1..], after));
        out.push_str(shown);
        rest = after;
    }
    out.push_str(rest);
    let out = out.replace("**", "").replace("__", "").replace('`', "");
    out.split_whitespace().collect::<Vec<_>>().join(" ").trim_matches(['*', ':']).trim().to_owned()
}

/// The text, truncated with `…` after `most` characters.
pub(super) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let start: String = text.chars().take(most - 1).collect();
    format!("{}…", start.trim_end())
}

/// Letters and digits in lower case, everything between them as one `-`.
pub(super) fn slug(text: &str) -> String {
    let words: Vec<String> = plain(text)
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    if words.is_empty() { "skill".to_owned() } else { words.join("-") }
}
