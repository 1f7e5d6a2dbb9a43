//! The images that the node has.

/// Where images are from that are this project's own programs: `caipe.test/caipe-supervisor:any-tag`.
pub const REGISTRY: &str = "caipe.test/";
/// Where the chart has them from.
const RELEASED: &str = "ghcr.io/caipe-io/";

/// Our programs.
const PROGRAMS: [&str; 3] = ["caipe-supervisor", "caipe-operator", "caipe-fixture-mcp"];

/// The program that an image starts if nothing else is said; nothing if there is no such image.
pub(super) fn entry(image: &str) -> Option<&'static str> {
    let name =
        image.strip_prefix(REGISTRY).or_else(|| image.strip_prefix(RELEASED))?.split(['@', ':']).next()?;
    PROGRAMS.into_iter().find(|program| *program == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_programs_are_images() {
        assert_eq!(entry("caipe.test/caipe-supervisor:2"), Some("caipe-supervisor"));
        assert_eq!(entry("caipe.test/caipe-operator"), Some("caipe-operator"));
        assert_eq!(entry("ghcr.io/caipe-io/caipe-operator:0.1.0"), Some("caipe-operator"));
        assert_eq!(entry("caipe.test/nothing:1"), None);
        assert_eq!(entry("docker.io/caipe-supervisor"), None);
    }
}
