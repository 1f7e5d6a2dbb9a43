//! Reads the file of defaults.

use std::path::Path;

use anyhow::{Context, bail};
use caipe_operator::defaults::Defaults;

use super::documents;

/// Reads and checks the file, if one is given.
pub(super) fn read(path: Option<&Path>) -> anyhow::Result<Defaults> {
    let Some(path) = path else { return Ok(Defaults::default()) };
    let (text, shown) = (documents::read(path)?, path.display());
    let defaults: Defaults =
        serde_saphyr::from_str(&text).with_context(|| format!("{shown} is not a file of defaults"))?;
    if let Err(faults) = defaults.check() {
        bail!("the defaults of {shown} are invalid:\n{faults}");
    }
    Ok(defaults)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read_text(text: &str) -> Result<Defaults, (String, String)> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let name = file.path().display().to_string();
        read(Some(file.path())).map_err(|error| (format!("{error:#}"), name))
    }

    #[test]
    fn a_wrong_file_is_named_with_what_is_wrong_in_it() {
        let (error, name) = read_text("podTemplate: { spec: { nodeSelectr: {} } }").unwrap_err();
        assert_eq!(
            error,
            format!(
                "the defaults of {name} are invalid:\npodTemplate.spec.nodeSelectr: a pod template has no \
                 such key: correct it, or take it out"
            )
        );
        for text in ["imagePullPolicy: Sometimes", "drain: 3", "[", "drainSeconds: soon"] {
            let (error, name) = read_text(text).unwrap_err();
            assert!(error.contains(&name), "{error}");
        }
    }

    #[test]
    fn without_a_file_there_are_still_defaults() {
        assert_eq!(read(None).unwrap(), Defaults::default());
        assert_eq!(read_text("{}").unwrap(), Defaults::default());
    }
}
