//! What agents remember about people: from one conversation to the next, across restarts, and never of another person.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use caipe_fixtures::redis::RedisServer;
use caipe_tests::supervisor::{Setup, Supervisor};
use caipe_tests::token_issuer::{AUDIENCE, ISSUER, Issuer};
use serde_json::{Value, json};

use crate::encryption::{KEYS, NEW, OLD};
use crate::redis::command;
use crate::store_copy::{is_refused, sqlite, succeeds, text};

/// The helper saves, finds and forgets what the request names, and answers with the results.
const SCRIPT: &str = r#"
turns:
  - when: { agent: helper, user: "remember ", turn: 0 }
    reply: { calls: [{ name: memory_save, arguments: { fact: "{{ user | replace('remember ', '') }}", owner: bob } }] }
  - when: { agent: helper, user: "recall ", turn: 0 }
    reply: { calls: [{ name: memory_search, arguments: { words: "{{ user | replace('recall ', '') }}" } }] }
  - when: { agent: helper, user: "forget ", turn: 0 }
    reply: { calls: [{ name: memory_forget, arguments: { id: "{{ user | replace('forget ', '') }}" } }] }
  - when: { agent: helper }
    reply: { text: "{% for result in results %}<{{ result.content }}>{% endfor %}" }
  - when: { agent: supervisor, user: "own ", turn: 0 }
    reply: { calls: [{ name: memory_search, arguments: {} }] }
  - when: { agent: supervisor, turn: 0 }
    reply: { calls: [{ name: task, arguments: { subagent_type: helper, description: "{{ user }}" } }] }
  - when: { agent: supervisor }
    reply: { calls: [{ name: PlatformEngineerResponse, arguments: { is_task_complete: true, require_user_input: false, content: "{{ results[0].content }}" } }] }
"#;

fn setup(memory: &str, of_agent: &str) -> Result<Setup> {
    let resource = format!(
        "apiVersion: caipe.io/v1alpha1
kind: CaipeSupervisor
metadata: {{ name: facts }}
spec:
  model: {{ provider: scripted, script: {{ path: script.yaml }} }}
{memory}
  agents:
    - name: helper
      identity: {{ inline: {{ title: The Helper, description: Helps., systemPrompt: You help. }} }}
{of_agent}
"
    );
    Setup::of(&resource, SCRIPT)
}

fn remembers() -> Result<Setup> {
    setup("  memory: { supervisor: true }", "      memory: {}")
}

async fn chat(setup: &Setup, supervisor: &Supervisor, words: &str) -> Result<String> {
    let output = setup.run(&["chat", "--url", supervisor.url(), words]).await?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    Ok(text)
}

async fn facts(supervisor: &Supervisor) -> Result<Vec<Value>> {
    let (status, body) = supervisor.get("/memory").await?;
    let body: Value = serde_json::from_str(&body)?;
    ensure!(status == 200, "{status} {body}");
    Ok(body["facts"].as_array().context("no facts")?.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_finds_in_another_conversation_what_it_saved_until_the_person_deletes_it() -> Result<()> {
    check_memory(&remembers()?).await
}

/// The supervisor answers its calls. Another client has no such tools.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_in_a_process_of_its_own_remembers_in_the_same_way() -> Result<()> {
    let setup = remembers()?;
    let agent = setup.clone().serving(["agent", "helper"]).start().await?;
    let remote = setup.env("DISTRIBUTED_AGENTS", "helper").env("HELPER_AGENT_URL", agent.url());
    check_memory(&remote).await?;
    let alone = agent.ask("recall tea").await?.texts("complete_result").concat();
    ensure!(alone.contains("no such tool"), "{alone}");
    Ok(())
}

/// While a call waits for its store, which does not answer, the supervisor or the agent dies.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_the_supervisor_answers_survives_the_end_of_either_process() -> Result<()> {
    for dies in ["supervisor", "agent"] {
        let server = RedisServer::start(&[])?;
        let setup = remembers()?
            .env("LANGGRAPH_STORE_TYPE", "redis")
            .env("LANGGRAPH_STORE_REDIS_URL", server.url())
            .env("LANGGRAPH_STORE_KEY_PREFIX", "people");
        let of_agent = setup.clone().serving(["agent", "helper"]);
        let mut agent = of_agent.start().await?;
        let setup = setup.env("DISTRIBUTED_AGENTS", "helper").env("HELPER_AGENT_URL", agent.url());
        let mut supervisor = setup.start().await?;
        command(&server, &["client", "pause", "60000", "write"])?;
        let mut stream = supervisor.stream("remember the person likes tea", None).await?;
        let begun = |event: &Value| event.to_string().to_lowercase().contains("memory_save");
        let events = stream.read_until(begun).await?;
        let task = events[0]["id"].as_str().context("the stream begins without a task")?;
        let at = agent.url().trim_start_matches("http://").to_owned();
        if dies == "agent" {
            agent.kill().await?;
            agent = of_agent.clone().listening_at(&at).start().await?;
        } else {
            supervisor.kill().await?;
            supervisor = setup.start_unready().await?;
        }
        command(&server, &["client", "unpause"])?;
        let read = async || supervisor.call("tasks/get", json!({ "id": task })).await;
        supervisor
            .until("the task ends", async || {
                let state = read().await?["result"]["status"]["state"].clone();
                ensure!(state != "failed", "{dies}: {state}");
                Ok(state == "completed")
            })
            .await?;
        let text = read().await?["result"]["artifacts"].to_string();
        ensure!(text.contains("<Saved as the fact `"), "{dies}: {text}");
        let known = facts(&supervisor).await?;
        ensure!(known.len() == 1, "{dies}: {known:?}");
        agent.kill().await?;
    }
    Ok(())
}

async fn check_memory(setup: &Setup) -> Result<()> {
    let supervisor = setup.start().await?;
    let saved = supervisor.ask("remember the person likes tea").await?.result()?;
    ensure!(saved.starts_with("<Saved as the fact `"), "{saved}");
    supervisor.ask("remember the person likes tea").await?;
    supervisor.kill().await?;

    let supervisor = setup.start().await?;
    let found = supervisor.ask("recall teas").await?.result()?;
    ensure!(!found.contains("likes tea"), "only words of the fact: {found}");
    let found = supervisor.ask("recall tea").await?.result()?;
    ensure!(found.contains(r#""fact": "the person likes tea""#), "{found}");
    let own = supervisor.ask("own memory").await?.result()?;
    ensure!(!own.contains("tea"), "each agent has its own: {own}");
    let listed = facts(&supervisor).await?;
    let [fact] = listed.as_slice() else { anyhow::bail!("one fact, not {listed:?}") };
    assert_eq!((&fact["agent"], &fact["fact"]), (&json!("helper"), &json!("the person likes tea")));
    ensure!(fact["expires"].is_string(), "{fact}");

    let shown = chat(setup, &supervisor, "/memory").await?;
    ensure!(shown.starts_with("1. the person likes tea (helper, "), "{shown}");
    let id = fact["id"].as_str().context("no id")?;
    let forgotten = chat(setup, &supervisor, &format!("/memory forget {id}")).await?;
    ensure!(forgotten.contains("is forgotten"), "{forgotten}");
    ensure!(chat(setup, &supervisor, &format!("/memory forget {id}")).await?.contains("There is no fact"));
    let found = supervisor.ask("recall tea").await?.result()?;
    ensure!(!found.contains("likes tea"), "{found}");
    ensure!(facts(&supervisor).await?.is_empty());
    supervisor.ask("remember one").await?;
    supervisor.ask("remember two").await?;
    ensure!(chat(setup, &supervisor, "/memory forget all").await?.starts_with("2 facts"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_remembered_by_default() -> Result<()> {
    let supervisor = setup("", "")?.start().await?;
    for request in ["remember tea", "recall tea", "forget a", "own memory"] {
        let text = supervisor.ask(request).await?.result()?;
        ensure!(text.contains("memory_") && !text.contains("Saved"), "no such tool: {text}");
    }
    ensure!(facts(&supervisor).await?.is_empty());
    Ok(())
}

/// A request of a person with a token.
#[tokio::test(flavor = "multi_thread")]
async fn people_with_tokens_do_not_reach_the_facts_of_others() -> Result<()> {
    let issuer = Issuer::start().await?;
    let setup = remembers()?.env("A2A_AUTH_OAUTH2", "true").env("JWKS_URI", issuer.url());
    let supervisor = setup.env("ISSUER", ISSUER).env("AUDIENCE", AUDIENCE).start().await?;
    let (ann, bob) = (issuer.token("ann", &json!({}))?, issuer.token("bob", &json!({}))?);
    let url = supervisor.url();
    let send = async |token: &str, text: &str| -> Result<String> {
        Ok(supervisor.send_with(token, text).await?["artifacts"].to_string())
    };
    send(&ann, "remember alpha").await?;
    send(&bob, "remember bravo").await?;
    let http = reqwest::Client::new();
    let listed = async |token: &str| -> Result<Value> {
        Ok(http.get(format!("{url}/memory")).bearer_auth(token).send().await?.json().await?)
    };
    let of_ann = listed(&ann).await?;
    ensure!(of_ann.to_string().contains("alpha") && !of_ann.to_string().contains("bravo"), "{of_ann}");
    let id = of_ann["facts"][0]["id"].as_str().context("no id")?.to_owned();
    ensure!(!send(&bob, "recall alpha").await?.contains("alpha\\\""), "bob finds the fact of ann");
    ensure!(send(&bob, &format!("forget {id}")).await?.contains("There is no fact"));
    let delete = async |path: &str, token: &str| -> Result<u16> {
        Ok(http.delete(format!("{url}{path}")).bearer_auth(token).send().await?.status().as_u16())
    };
    assert_eq!(delete(&format!("/memory/{id}"), &bob).await?, 404);
    assert_eq!(delete("/memory", &bob).await?, 200);
    assert_eq!(listed(&ann).await?, of_ann, "bob has deleted his own");
    let claimed =
        http.get(format!("{url}/memory")).bearer_auth(&bob).header("x-user-email", "ann@example.com");
    assert_eq!(claimed.send().await?.status().as_u16(), 400, "a token names its user");
    for request in [http.get(format!("{url}/memory")), http.delete(format!("{url}/memory"))] {
        assert_eq!(request.send().await?.status().as_u16(), 401, "without a token");
    }
    assert_eq!(delete(&format!("/memory/{id}"), &ann).await?, 200);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_acts_for_several_people_does_not_mix_their_facts() -> Result<()> {
    let supervisor = remembers()?.start().await?;
    let ask = async |user: &str, text: &str| -> Result<String> {
        let task = supervisor.send_for(&format!("{user}@example.com"), text).await?;
        Ok(task["artifacts"].to_string())
    };
    ask("ann", "remember the colour is alpha").await?;
    ask("bob", "remember the colour is bravo").await?;
    let found = ask("Bob", "recall colour").await?;
    ensure!(found.contains("bravo") && !found.contains("alpha"), "{found}");
    ensure!(facts(&supervisor).await?.is_empty(), "a caller without a user is another person");
    let http = reqwest::Client::new();
    let url = format!("{}/memory", supervisor.url());
    let of_ann: Value = http.get(&url).header("x-user-email", "ann@example.com").send().await?.json().await?;
    ensure!(of_ann.to_string().contains("alpha") && !of_ann.to_string().contains("bravo"), "{of_ann}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_list_has_pages() -> Result<()> {
    let supervisor = remembers()?.start().await?;
    for number in 0..3 {
        supervisor.ask(&format!("remember number {number}")).await?;
    }
    let page = async |query: &str| -> Result<(u16, Value)> {
        let (status, body) = supervisor.get(&format!("/memory{query}")).await?;
        Ok((status, serde_json::from_str(&body)?))
    };
    let first = page("?limit=2&agent=helper").await?.1;
    assert_eq!(first["facts"].as_array().map(Vec::len), Some(2));
    let next = first["next"].as_str().context("no next")?;
    let second = page(&format!("?limit=2&after={next}")).await?.1;
    assert_eq!((&second["facts"][0]["fact"], &second["next"]), (&json!("number 0"), &Value::Null));
    assert_eq!(page("?agent=other").await?.1, json!({ "facts": [] }));
    for query in ["?limit=0", "?limit=many", "?limit=1001", "?after=none"] {
        let (status, body) = page(query).await?;
        ensure!(status == 400 && body["reason"].is_string(), "{query}: {status} {body}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn facts_can_be_in_a_redis_of_their_own() -> Result<()> {
    let server = RedisServer::start(&[])?;
    let key = "test:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let setup = remembers()?
        .env("LANGGRAPH_STORE_TYPE", "redis")
        .env("LANGGRAPH_STORE_REDIS_URL", server.url())
        .env("LANGGRAPH_STORE_KEY_PREFIX", "people")
        .env("LANGGRAPH_STORE_TTL_MINUTES", "0")
        .env("CAIPE_STORE_ENCRYPTION_KEYS", key);
    let supervisor = setup.start().await?;
    supervisor.ask("remember the person likes tea").await?;
    ensure!(facts(&supervisor).await?[0]["expires"].is_null());
    let keys = command(&server, &["keys", "*"])?;
    ensure!(keys.contains("{people}:f:") && !keys.contains(":t:"), "facts and no tasks: {keys}");
    let dump = command(&server, &["hvals", "{people}:f:[null,null]"])?;
    ensure!(dump.contains("enc1.") && !dump.contains("likes tea"), "{dump}");
    supervisor.kill().await?;
    let supervisor = setup.start().await?;
    ensure!(supervisor.ask("recall tea").await?.result()?.contains("likes tea"));
    let (copying, file) = (setup.env("LANGGRAPH_CHECKPOINT_REDIS_URL", server.url()), tempfile::tempdir()?);
    let file = file.path().join("facts.jsonl");
    let export = ["export", "redis:people", text(&file)?];
    is_refused(&copying, &export, "in use by a running supervisor").await?;
    supervisor.stop().await?;
    let exported = succeeds(&copying, &export).await?;
    ensure!(exported.contains("0 conversations, 0 tasks and 1 facts"), "{exported}");
    Ok(())
}

/// From SQLite to Redis, with another key: the facts keep their ids and times, are saved again as the same facts, and can be
/// forgotten.
#[tokio::test(flavor = "multi_thread")]
async fn facts_move_to_another_store_and_another_key() -> Result<()> {
    let server = RedisServer::start(&[])?;
    let local = remembers()?.env(KEYS, OLD);
    let memory =
        "  memory: { supervisor: true }\n  store: { redis: { secretRef: { name: redis }, database: moved } }";
    let moved = setup(memory, "      memory: {}")?.env("REDIS_URL", server.url()).env(KEYS, NEW);
    let supervisor = local.start().await?;
    for fact in ["tea", "coffee"] {
        supervisor.ask(&format!("remember the person likes {fact}")).await?;
    }
    let before = facts(&supervisor).await?;
    supervisor.stop().await?;

    let files = ["export.jsonl", "rotated.jsonl", "back.jsonl"].map(|name| moved.dir().join(name));
    let [export, rotated, back] = [text(&files[0])?, text(&files[1])?, text(&files[2])?];
    let exported = succeeds(&local, &["export", &sqlite(&local), export]).await?;
    ensure!(exported.contains("and 2 facts"), "{exported}");
    let both = local.clone().env(KEYS, format!("{NEW}\n{OLD}"));
    succeeds(&both, &["rotate", export, rotated]).await?;
    let content = std::fs::read_to_string(rotated)?;
    ensure!(content.contains("enc1.new.") && !content.contains("enc1.old."), "{content}");
    ensure!(!content.contains("likes tea"), "a fact is readable: {content}");
    succeeds(&moved, &["import", rotated, "redis:moved"]).await?;
    succeeds(&moved, &["export", "redis:moved", back]).await?;
    for file in [rotated, back] {
        let compared = succeeds(&moved, &["verify", file, "redis:moved"]).await?;
        ensure!(compared.contains("2 facts with the store: 0 differences"), "{compared}");
    }

    let supervisor = moved.start().await?;
    assert_eq!(facts(&supervisor).await?, before);
    supervisor.ask("remember the person likes tea").await?;
    let ids = |facts: &[Value]| facts.iter().map(|fact| fact["id"].to_string()).collect::<BTreeSet<_>>();
    assert_eq!(ids(&facts(&supervisor).await?), ids(&before), "the same facts");
    ensure!(supervisor.ask("recall tea").await?.result()?.contains("likes tea"));
    ensure!(chat(&moved, &supervisor, "/memory forget all").await?.starts_with("2 facts"));
    ensure!(facts(&supervisor).await?.is_empty());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_does_not_exist_here_is_refused_at_the_start() -> Result<()> {
    let setup = remembers()?.env("LANGGRAPH_STORE_TYPE", "postgres");
    let file = setup.dir().join("supervisor.yaml").display().to_string();
    let refused = setup.run(&["serve", "-f", &file, "--listen", "127.0.0.1:0"]).await?;
    let errors = String::from_utf8_lossy(&refused.stderr);
    ensure!(!refused.status.success(), "{errors}");
    ensure!(errors.contains("$LANGGRAPH_STORE_TYPE: `postgres` is unknown"), "{errors}");
    Ok(())
}
