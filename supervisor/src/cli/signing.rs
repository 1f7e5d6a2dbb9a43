//! The key that signs the agent card.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use caipe_a2a::card::{CardSigner, sign};
use caipe_a2a::model::AgentCard;

/// Largest key file in bytes.
const MAX_KEY: u64 = 64 * 1024;

#[derive(Debug, clap::Args)]
pub(super) struct Signing {
    /// A file with the private key that signs the agent card, unencrypted PKCS#8 PEM
    #[arg(long = "card-signing-key", env = "CAIPE_CARD_SIGNING_KEY", value_name = "FILE")]
    key: Option<PathBuf>,

    /// The id of that key [default: its thumbprint]
    #[arg(long = "card-signing-kid", env = "CAIPE_CARD_SIGNING_KID", value_name = "ID")]
    kid: Option<String>,

    /// Where the public key can be fetched, as a JSON Web Key Set
    #[arg(long = "card-signing-jku", env = "CAIPE_CARD_SIGNING_JKU", value_name = "URL")]
    jku: Option<String>,
}

impl Signing {
    /// The signer, if a key is given. A variable that is set but empty gives none.
    pub(super) fn signer(&self) -> anyhow::Result<Option<CardSigner>> {
        let Some(path) = self.key.as_deref().filter(|path| !path.as_os_str().is_empty()) else {
            return Ok(None);
        };
        let non_empty = |text: &'_ Option<String>| text.clone().filter(|text| !text.is_empty());
        let pem = read(path).with_context(|| format!("failed to read the signing key {}", path.display()))?;
        let signer =
            CardSigner::from_pem(&pem, non_empty(&self.kid).as_deref(), non_empty(&self.jku).as_deref());
        signer.map(Some).with_context(|| format!("failed to use the signing key {}", path.display()))
    }

    /// Signs cards if a key is given.
    pub(super) fn sign<'a>(&self, cards: impl IntoIterator<Item = &'a mut AgentCard>) -> anyhow::Result<()> {
        let Some(signer) = self.signer()? else { return Ok(()) };
        for card in cards {
            sign(card, &signer)?;
        }
        tracing::info!(kid = signer.kid(), "the agent card is signed");
        Ok(())
    }
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut pem = Vec::new();
    std::fs::File::open(path)?.take(MAX_KEY + 1).read_to_end(&mut pem)?;
    anyhow::ensure!(pem.len() as u64 <= MAX_KEY, "it is larger than {MAX_KEY} bytes");
    Ok(pem)
}

#[cfg(test)]
mod tests {
    use caipe_a2a::card::{CardBuilder, KeySet, document, verify};

    use super::*;

    fn key(body: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let [begin, end] = ["BEGIN", "END"].map(|word| format!("-----{word} PRIVATE KEY-----"));
        std::fs::write(file.path(), format!("{begin}\n{body}\n{end}\n")).unwrap();
        file
    }

    fn signing(key: &Path, kid: Option<&str>) -> Signing {
        Signing { key: Some(key.to_owned()), kid: kid.map(str::to_owned), jku: None }
    }

    /// Ed25519 of the seed 7, 7, 7, …
    const SEED: &str = "MC4CAQAwBQYDK2VwBCIEIAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH";

    #[test]
    fn a_card_is_signed_with_the_key_of_the_file() {
        let (file, url) = (key(SEED), "https://a.example/");
        for kid in [None, Some("release-1"), Some("")] {
            let signing = signing(file.path(), kid);
            let mut card = CardBuilder::new("n", "d", url, "1").build();
            signing.sign([&mut card]).unwrap();
            let keys = serde_json::to_vec(&signing.signer().unwrap().unwrap().key_set().unwrap()).unwrap();
            let verified = verify(&document(&card, true).unwrap(), &KeySet::parse(&keys).unwrap()).unwrap();
            assert_eq!(verified.kid == "release-1", kid == Some("release-1"));
        }
    }

    #[test]
    fn a_bad_file_is_reported_by_its_name_and_what_to_do() {
        let broken = key("AAAA");
        for (path, says) in [
            (Path::new("/nowhere/key.pem"), "failed to read the signing key /nowhere/key.pem"),
            (broken.path(), "openssl pkcs8"),
            (broken.path(), "failed to use the signing key"),
        ] {
            let error = format!("{:#}", signing(path, None).signer().unwrap_err());
            assert!(error.contains(says), "{error}");
        }
        assert!(signing(Path::new(""), None).signer().unwrap().is_none(), "set but empty is not set");
    }
}
