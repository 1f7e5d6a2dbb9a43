//! All skills at one moment. Pure.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use crate::skill::{Origin, Reader, Skill, SourceKind, Visibility};

/// The skills of all sources at one moment, in the order of their names.
#[derive(Debug, Default)]
pub struct Catalog {
    /// Increases with each change.
    pub generation: u64,
    skills: Vec<Indexed>,
}

#[derive(Debug)]
struct Indexed {
    skill: Arc<Skill>,
    /// Name and description in lower case.
    text: Box<str>,
    /// Changes with the skill.
    digest: u64,
}

/// Which skills a reader wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// A part of the name or the description, in any case.
    pub text: Option<String>,
    pub source: Option<SourceKind>,
    /// At least one of these tags, if there are any.
    pub tags: Vec<String>,
    pub visibility: Option<Visibility>,
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    pub skills: Vec<Arc<Skill>>,
    /// How many skills match in all.
    pub total: usize,
    /// Changes with the skills of the part.
    pub digest: u64,
}

/// Most skills that a search by words finds.
const FOUND: usize = 8;

impl Catalog {
    /// The catalogue of the skills of all sources. Of global skills of one name, the one of the first kind of source is in it, and
    /// of the same kind the one of the first source; a skill of the program gives way to all others. A skill with the name of a
    /// global one is left out.
    pub fn new(generation: u64, sources: impl IntoIterator<Item = Arc<Skill>>) -> Self {
        let mut all: Vec<Arc<Skill>> = sources.into_iter().collect();
        // Stable, so sources of the same kind stay in order.
        all.sort_by(|a, b| rank(a).cmp(&rank(b)));
        all.dedup_by(|next, first| next.name == first.name && first.visibility == Visibility::Global);
        all.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
        Self { generation, skills: all.into_iter().map(indexed).collect() }
    }

    /// How many skills it has.
    pub fn len(&self) -> usize {
        self.skills.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }

    /// The skills that a reader may read and that match, `offset` left out, at most `limit`.
    pub fn list(&self, reader: &Reader, filter: &Filter, offset: usize, limit: usize) -> Page {
        let text = filter.text.as_ref().map(|text| text.to_lowercase());
        let matches = |it: &&Indexed| {
            reader.may_read(&it.skill)
                && text.as_ref().is_none_or(|text| it.text.contains(text.as_str()))
                && filter.source.is_none_or(|kind| it.skill.origin.kind == kind)
                && filter.visibility.is_none_or(|visibility| it.skill.visibility == visibility)
                && (filter.tags.is_empty() || it.skill.has_tag(&filter.tags))
        };
        let (mut skills, mut total, mut digest) = (Vec::new(), 0, DefaultHasher::new());
        for found in self.skills.iter().filter(matches) {
            if total >= offset && skills.len() < limit {
                skills.push(found.skill.clone());
                found.digest.hash(&mut digest);
            }
            total += 1;
        }
        Page { skills, total, digest: digest.finish() }
    }

    /// The skill of this id that a reader may read.
    pub fn skill(&self, reader: &Reader, id: &str) -> Option<Arc<Skill>> {
        let found = self.skills.iter().find(|it| it.skill.id == id)?;
        reader.may_read(&found.skill).then(|| found.skill.clone())
    }

    /// The global skills. Agents use no others, because a prompt is the same for all users.
    pub fn all_global(&self) -> impl Iterator<Item = &Arc<Skill>> {
        self.skills.iter().map(|it| &it.skill).filter(|skill| skill.visibility == Visibility::Global)
    }

    /// The global skill of this name.
    pub fn global(&self, name: &str) -> Option<&Arc<Skill>> {
        let start = self.skills.partition_point(|it| it.skill.name.as_str() < name);
        let named = self.skills.iter().skip(start).take_while(|it| it.skill.name == name);
        named.map(|it| &it.skill).find(|it| it.visibility == Visibility::Global)
    }

    /// Whether both have the same skills in memory.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let pairs = || self.skills.iter().zip(&other.skills);
        self.skills.len() == other.skills.len() && pairs().all(|(a, b)| Arc::ptr_eq(&a.skill, &b.skill))
    }

    /// The global skills that match the words of a query best, the best first, of those whose names are permitted.
    pub fn find(&self, query: &str, permits: impl Fn(&str) -> bool) -> Vec<&Arc<Skill>> {
        let query = query.to_lowercase();
        let is_separator = |c: char| !c.is_alphanumeric();
        let words: Vec<&str> = query.split(is_separator).filter(|word| word.chars().count() > 2).collect();
        let score = |it: &Indexed| {
            let of_word = |word: &&str| {
                let named = it.skill.name.split('-').any(|part| part == *word);
                usize::from(named) * 3 + usize::from(it.text.contains(*word))
            };
            words.iter().map(of_word).sum::<usize>()
        };
        let usable = self
            .skills
            .iter()
            .filter(|it| it.skill.visibility == Visibility::Global && permits(&it.skill.name));
        let mut found: Vec<(usize, &Arc<Skill>)> =
            usable.map(|it| (score(it), &it.skill)).filter(|(score, _)| *score > 0).collect();
        found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        found.into_iter().take(FOUND).map(|(_, skill)| skill).collect()
    }
}

fn indexed(skill: Arc<Skill>) -> Indexed {
    let text = format!("{}\n{}", skill.name, skill.description).to_lowercase().into();
    let mut digest = DefaultHasher::new();
    skill.hash(&mut digest);
    Indexed { skill, text, digest: digest.finish() }
}

/// The order of skills of one name: a global one before others, and a skill of the program after those of sources.
fn rank(skill: &Skill) -> (&str, bool, bool, SourceKind) {
    let Origin { is_built_in, kind, .. } = skill.origin;
    (&skill.name, skill.visibility != Visibility::Global, is_built_in, kind)
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
