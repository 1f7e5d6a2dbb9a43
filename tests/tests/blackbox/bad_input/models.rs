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
async fn a_model_that_cannot_be_used_leaves_it_alive_but_not_ready() -> Result<()> {
    let scripted = json!({"provider": "scripted", "script": {"path": "other.yaml"}});
    let table = [
        ("no key", json!({"provider": "openai", "name": "gpt-4o"}), None, "OPENAI_API_KEY"),
        ("no script", scripted.clone(), None, "other.yaml"),
        ("a script without turns", scripted.clone(), Some("turns: []"), "other.yaml: turns"),
        ("a script with an unknown key", scripted, Some("turns:\n  - replly: {text: hi}"), "replly"),
    ];
    for (what, model, script, names) in table {
        let setup = Scenario::new().set("model", model).setup()?;
        let setup =
            script.map_or_else(|| Ok(setup.clone()), |text| setup.clone().file("other.yaml", text))?;
        let supervisor = setup.start_unready().await?;
        let (code, body) = supervisor.get("/ready").await?;
        ensure!(code == 503 && body.contains("model"), "{what}: {code} {body}");
        let told = supervisor.log().lines().any(|line| line.contains("WARN") && line.contains(names));
        ensure!(told, "{what}: no warning names {names:?}:\n{}", supervisor.log());
        let answer = supervisor.ask("hi").await?;
        assert_eq!(answer.state(), "failed", "{what}");
        ensure!(
            answer.status_text().contains(names),
            "{what}: {:?} does not name {names:?}",
            answer.status_text()
        );
    }
    Ok(())
}
