use anyhow::{Result, ensure};
use caipe_tests::provider::{Mood, Provider};
use caipe_tests::scenario::Scenario;
use serde_json::json;

const KEY: &str = "sk-test-0123456789abcdefghijklmnop";

/// How the provider is, and what the user must be told.
const TABLE: [(Mood, &str); 6] = [
    (Mood::Status(401), "OPENAI_API_KEY"),
    (Mood::Status(429), "429"),
    (Mood::Status(500), "500"),
    (Mood::Page, ""),
    (Mood::Garbage, ""),
    (Mood::HalfStream, ""),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_misbehaves_fails_the_run_in_words_and_nothing_else() -> Result<()> {
    let provider = Provider::start(Mood::Good).await?;
    let model = json!({"provider": "openai", "name": "gpt-4o", "baseUrl": provider.url()});
    let scenario = Scenario::new().set("model", model);
    let mut supervisor = scenario.setup()?.env("OPENAI_API_KEY", KEY).start().await?;
    for (mood, names) in TABLE {
        provider.becomes(mood);
        let answer = supervisor.ask("hi").await?;
        assert_eq!(answer.state(), "failed", "{mood:?}: {}", answer.outline());
        let reason = answer.status_text();
        ensure!(reason.starts_with("Agent execution failed: "), "{mood:?}: {reason:?}");
        ensure!(reason.contains(names), "{mood:?}: {reason:?} does not name {names:?}");
        ensure!(supervisor.is_alive()?, "{mood:?}: it died");

        provider.becomes(Mood::Good);
        assert_eq!(
            supervisor.ask_in("hi again", Some(answer.context())).await?.result()?,
            "Hello.",
            "after {mood:?}"
        );
    }
    ensure!(!supervisor.log().contains(KEY), "the key is in the log");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_key_is_told_by_its_name() -> Result<()> {
    let scenario = Scenario::new().set("model", json!({"provider": "openai", "name": "gpt-4o"}));
    let setup = scenario.setup()?;
    let serve = ["serve", "-f", "supervisor.yaml", "--listen", "127.0.0.1:0", "--data-dir", "data"];
    let running = setup.start_unready().await;
    // Either it refuses to start, or it runs and says so wherever one looks.
    let words = match running {
        Ok(supervisor) => {
            let (code, body) = supervisor.get("/ready").await?;
            ensure!(code == 503, "it claims to be ready: {body}");
            body
        }
        Err(_) => String::from_utf8_lossy(&setup.run(&serve).await?.stderr).into_owned(),
    };
    ensure!(words.contains("OPENAI_API_KEY"), "{words}");
    Ok(())
}
