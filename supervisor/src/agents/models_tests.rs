//! Which of the chosen models are asked.

use std::collections::BTreeMap;
use std::io::Write as _;

use super::{ModelFactory, UnavailableModel};
use crate::config::Settings;

/// The name of the model that stands first when the environment is this.
fn first(env: &[(&str, &str)]) -> String {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let spec = "
apiVersion: caipe.io/v1alpha1
kind: CaipeSupervisor
metadata: { name: here }
spec:
  model: { provider: openai, name: gpt-5, fallbacks: [{ provider: anthropic-claude, name: claude-sonnet-5 }] }
  agents: [{ name: github }]
";
    file.write_all(spec.as_bytes()).unwrap();
    let env: BTreeMap<String, String> =
        env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let settings = Settings::load(Some(file.path()), env.into()).unwrap();
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    ModelFactory::new(&settings, reqwest::Client::new()).supervisor().name().to_owned()
}

#[tokio::test]
async fn a_model_without_a_key_does_not_stand_before_one_that_can_answer() {
    assert!(first(&[("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")]).contains("gpt-5"));
    assert!(first(&[("ANTHROPIC_API_KEY", "k")]).contains("claude-sonnet-5"));
    assert_eq!(first(&[]), UnavailableModel::NAME);
}
