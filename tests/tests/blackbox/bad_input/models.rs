use anyhow::{Result, ensure};
use caipe_tests::faulty_provider::{Mood, Provider};
use caipe_tests::scenario::Scenario;
use serde_json::json;

const KEY: &str = "sk-test-0123456789abcdefghijklmnop";

/// How the provider behaves, what the user reads, and what the log names.
const TABLE: [(Mood, &str, &str); 6] = [
    (Mood::Status(401), "credentials", "OPENAI_API_KEY"),
    (Mood::Status(429), "too many requests", "429"),
    (Mood::Status(500), "overloaded or out of order", "500"),
    (Mood::Page, "the language model", ""),
    (Mood::Garbage, "the language model", ""),
    (Mood::HalfStream, "the language model", ""),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_misbehaves_fails_the_run_in_words_and_nothing_else() -> Result<()> {
    let provider = Provider::start(Mood::Good).await?;
    let model = json!({"provider": "openai", "name": "gpt-4o", "baseUrl": provider.url()});
    let scenario = Scenario::new().set("model", model);
    let mut supervisor = scenario.setup()?.env("OPENAI_API_KEY", KEY).start().await?;
    for (mood, reported, logged) in TABLE {
        provider.becomes(mood);
        let answer = supervisor.ask("hi").await?;
        assert_eq!(answer.state(), "failed", "{mood:?}: {}", answer.outline());
        let reason = answer.status_text();
        ensure!(reason.starts_with("Agent execution failed: "), "{mood:?}: {reason:?}");
        ensure!(reason.contains(reported), "{mood:?}: {reason:?} does not say {reported:?}");
        let words = ["gpt-4o", "openai", "127.0.0.1", KEY];
        ensure!(!words.iter().any(|word| answer.outline().contains(word)), "{}", answer.outline());
        ensure!(supervisor.log().contains(logged), "{mood:?}: the log does not name {logged:?}");
        let shown = answer.streamed(|event| event["artifact"]["metadata"]["is_final_answer"] == true);
        assert_eq!(shown.trim(), reason, "{mood:?}: a client that prints the stream alone shows it too");
        ensure!(answer.result().is_err(), "{mood:?}: a result would take away the button to try again");
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
async fn a_model_call_ends_at_its_deadline_and_a_cut_answer_says_so() -> Result<()> {
    let provider = Provider::start(Mood::Held).await?;
    let model = json!({"provider": "openai", "name": "gpt-4o", "baseUrl": provider.url()});
    let scenario = Scenario::new().set("model", model).set("limits", json!({"modelTimeoutSeconds": 1}));
    let supervisor = scenario.setup()?.env("OPENAI_API_KEY", KEY).start().await?;
    let answer = supervisor.ask("hi").await?;
    assert_eq!(answer.state(), "failed", "{}", answer.outline());
    ensure!(supervisor.log().contains("limits.modelTimeoutSeconds"), "{}", supervisor.log());

    provider.becomes(Mood::Cut);
    let cut = supervisor.ask("hi").await?.result()?;
    assert_eq!(cut, "Hel\n\n[The answer is cut off: it reached the output limit of the language model.]");
    ensure!(supervisor.log().contains("output limit"), "{}", supervisor.log());
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
        let warned = supervisor.log().lines().any(|line| line.contains("WARN") && line.contains(names));
        ensure!(warned, "{what}: no warning names {names:?}:\n{}", supervisor.log());
        let answer = supervisor.ask("hi").await?;
        assert_eq!(answer.state(), "failed", "{what}");
        ensure!(answer.status_text().contains("the language model"), "{what}: {:?}", answer.status_text());
    }
    Ok(())
}
