//! The skills that the program contains.

use crate::directory::{RawSkill, skill_of};
use crate::fault::Fault;
use crate::skill::{Origin, Skill};

macro_rules! skills {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../skills/", $name, "/SKILL.md")))),+]
    };
}

const SKILLS: [(&str, &str); 10] = skills![
    "access-request",
    "argocd-rollback",
    "cost-check",
    "incident-triage",
    "kubernetes-debugging",
    "oncall-handover",
    "postmortem",
    "release-notes",
    "runbook-writing",
    "terraform-review",
];

/// The skills that the program contains.
pub(crate) fn skills(origin: &Origin) -> Result<Vec<Skill>, Vec<Fault>> {
    let parse = |(name, text): (&str, &str)| {
        skill_of(RawSkill { document: text.to_owned(), ..RawSkill::default() }, name, origin)
    };
    SKILLS.into_iter().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skill::SourceKind;

    #[test]
    fn all_are_valid_and_not_suspicious() {
        let origin = Origin { kind: SourceKind::Default, id: "built-in".into(), is_built_in: true };
        let skills = skills(&origin).unwrap();
        assert_eq!(skills.len(), 10);
        for skill in skills {
            assert_eq!(skill.findings, [], "{}", skill.name);
            assert!(skill.instructions().starts_with("# "), "{}", skill.name);
            assert!(skill.description.contains("Use "), "{}: when to use it", skill.name);
            assert!(skill.metadata.contains_key("tags"), "{}", skill.name);
            assert!(skill.content.len() < 6000, "{}: {} bytes", skill.name, skill.content.len());
        }
    }
}
