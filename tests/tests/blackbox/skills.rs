//! Skills: the catalogue beside A2A, and agents that use skills.

use anyhow::{Context, Result, ensure};
use caipe_tests::scenario::{Scenario, answer};
use caipe_tests::supervisor::Setup;
use serde_json::{Value, json};

const SKILL: &str = "---\nname: triage\ndescription: Rates incidents.\n---\nLook at the metrics first.\n";

/// A directory with one skill beside the resource.
fn with_skill(setup: Setup) -> Result<Setup> {
    let folder = setup.dir().join("skills/triage");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("SKILL.md"), SKILL)?;
    let directory = setup.dir().join("skills");
    Ok(setup.env("SKILLS_DIR", directory))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_supervisor_uses_a_skill_and_people_see_it() -> Result<()> {
    let scenario = Scenario::new()
        .set("agents", json!([]))
        .turn(json!({"result_contains": "Look at the metrics first."}), answer("Rated."))
        .turn(
            json!({"user": "*"}),
            json!({"calls": [{"name": "use_skill", "arguments": {"name": "triage"}}]}),
        );
    let supervisor = with_skill(scenario.setup()?)?.start().await?;
    let seen = supervisor.ask("rate the outage").await?;
    assert_eq!(seen.result()?, "Rated.");
    let events = format!("{seen:?}");
    ensure!(events.contains("📚 Supervisor: Using skill triage"), "{events}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_catalogue_is_served_beside_a2a_and_needs_the_credential() -> Result<()> {
    let scenario = Scenario::new().set("agents", json!([]));
    let key = "a-key-of-more-than-16-characters";
    let supervisor = with_skill(scenario.setup()?)?.env("A2A_AUTH_SHARED_KEY", key).start_unready().await?;
    let url = |path: &str| format!("{}{path}", supervisor.url().trim_end_matches('/'));
    let http = reqwest::Client::new();
    let card = http.get(url("/.well-known/agent-card.json")).send().await?;
    assert_eq!(card.status(), 200);
    for path in ["/skills", "/skills/triage", "/docs", "/openapi.json", "/catalog-api-keys"] {
        assert_eq!(http.get(url(path)).send().await?.status(), 401, "{path}");
    }
    let listed: Value = http.get(url("/skills?q=RATES")).bearer_auth(key).send().await?.json().await?;
    let skill = json!({"id": "triage", "name": "triage", "description": "Rates incidents.", "source": "default",
        "source_id": "default", "content": null, "metadata": {}, "visibility": "global", "team_ids": [],
        "owner_user_id": null});
    let meta = json!({"total": 1, "sources_loaded": ["default"], "unavailable_sources": []});
    assert_eq!(listed, json!({"skills": [skill], "meta": meta}));
    let made: Value = http.post(url("/catalog-api-keys")).bearer_auth(key).send().await?.json().await?;
    let catalog_key = made["key"].as_str().context("a key")?;
    for (method, path, status) in
        [("GET", "/skills", 200), ("POST", "/skills/refresh", 403), ("GET", "/", 401), ("GET", "/tools", 401)]
    {
        let request = http.request(method.parse()?, url(path)).header("X-Caipe-Catalog-Key", catalog_key);
        assert_eq!(request.send().await?.status(), status, "{method} {path}");
    }
    let revoked =
        http.delete(url(&format!("/catalog-api-keys/{}", made["key_id"].as_str().context("an id")?)));
    assert_eq!(revoked.bearer_auth(key).send().await?.json::<Value>().await?, json!({"revoked": true}));
    let request = http.get(url("/skills")).header("X-Caipe-Catalog-Key", catalog_key);
    assert_eq!(request.send().await?.status(), 401);
    Ok(())
}
