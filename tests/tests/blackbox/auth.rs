//! Who may come in, and as whom.

use anyhow::{Context, Result, ensure};
use caipe_tests::agent;
use caipe_tests::migration_scenario;
use caipe_tests::programs;
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::{Setup, Supervisor, message};
use caipe_tests::token_issuer::{AUDIENCE, ISSUER, Issuer};
use serde_json::{Value, json};

use crate::approval::{careful, decide};
use crate::echo;

/// A call in A2A 0.3 with this bearer token: the status and the answer.
async fn call(supervisor: &Supervisor, bearer: &str, method: &str, params: Value) -> Result<(u16, Value)> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request = reqwest::Client::new().post(supervisor.url()).bearer_auth(bearer).json(&body);
    let answer = request.send().await?;
    Ok((answer.status().as_u16(), answer.json().await?))
}

async fn send(supervisor: &Supervisor, bearer: &str) -> Result<(u16, Value)> {
    call(supervisor, bearer, "message/send", message("hi", None)).await
}

async fn get(supervisor: &Supervisor, path: &str, bearer: &str) -> Result<u16> {
    let request = reqwest::Client::new().get(format!("{}{path}", supervisor.url())).bearer_auth(bearer);
    Ok(request.send().await?.status().as_u16())
}

fn hello() -> Result<Setup> {
    Scenario::new().answers("*", "Hello.").setup()
}

fn trusting(setup: Setup, issuer: &Issuer) -> Setup {
    let setup = setup.env("A2A_AUTH_OAUTH2", "true").env("JWKS_URI", issuer.url());
    setup.env("ISSUER", ISSUER).env("AUDIENCE", AUDIENCE)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_token_opens_the_status_and_nothing_else() -> Result<()> {
    let setup = hello()?.env("A2A_AUTH_SHARED_KEY", "s3cret").env("CAIPE_STATUS_TOKEN", "st4tus");
    let supervisor = setup.start().await?;
    for (path, bearer, expected) in [
        ("/internal/status", "st4tus", 200),
        ("/internal/status", "s3cret", 200),
        ("/internal/status", "st4tuS", 401),
        ("/tools", "st4tus", 401),
        ("/workflows", "st4tus", 401),
        ("/workflows", "s3cret", 200),
        ("/health", "st4tus", 200),
    ] {
        assert_eq!(get(&supervisor, path, bearer).await?, expected, "{path} {bearer}");
    }
    assert_eq!(send(&supervisor, "st4tus").await?.0, 401);
    assert_eq!(send(&supervisor, "s3cret").await?.0, 200);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_token_is_no_reason_to_listen_beyond_loopback() -> Result<()> {
    let setup = hello()?.env("CAIPE_STATUS_TOKEN", "st4tus");
    let output = setup.run(&["serve", "--listen", "0.0.0.0:0"]).await?;
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(!output.status.success() && words.contains("A2A_AUTH_SHARED_KEY"), "{words}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_can_be_guessed_is_no_reason_to_listen_beyond_loopback() -> Result<()> {
    let setup = hello()?.env("A2A_AUTH_SHARED_KEY", "k");
    let output = setup.run(&["serve", "--listen", "0.0.0.0:0"]).await?;
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(!output.status.success() && words.contains("less than 16 characters"), "{words}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_supervisor_opens_its_agents_with_their_key() -> Result<()> {
    let agents = echo(&["jira"])?;
    let jira = agent::setup(&agents, "jira")?.env("A2A_AUTH_SHARED_KEY", "agents-key").start().await?;
    let token = json!({"name": "keys", "key": "CAIPE_AGENT_KEY"});
    let external = json!([{"name": "jira", "external": {"url": jira.url(), "description": "Jira.", "secretRef": token}}]);
    let setup = echo(&["jira"])?.asks("compare", &["jira"]).set("agents", external).setup()?;
    let supervisor = setup.env("CAIPE_AGENT_KEY", "agents-key").start().await?;
    let answer = supervisor.ask("compare them").await?;
    assert_eq!(answer.result()?, "jira says: jira: compare them", "{}", answer.outline());
    ensure!(!supervisor.log().contains("agents-key"), "{}", supervisor.log());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_question_is_work_until_it_is_answered() -> Result<()> {
    let scenario = careful()?;
    let jira = agent::setup(&scenario, "jira")?.start().await?;
    let supervisor = agent::remote(scenario.setup()?, "jira", jira.url()).start().await?;
    let active = async |of: &Supervisor| {
        anyhow::Ok(migration_scenario::agent(of, "jira").await?["activeTasks"].clone())
    };
    assert_eq!((active(&supervisor).await?, active(&jira).await?), (json!(0), json!(0)));
    let asked = supervisor.ask("write it").await?;
    assert_eq!(asked.state(), "input-required", "{}", asked.outline());
    let open = async |count: u64| {
        Ok(active(&supervisor).await? == json!(count) && active(&jira).await? == json!(count))
    };
    supervisor.until("the question counts in both", async || open(1).await).await?;
    let answered = decide(&supervisor, &asked, json!({"type": "approve"})).await?;
    assert_eq!(answered.state(), "completed", "{}", answered.outline());
    supervisor.until("it counts no more", async || open(0).await).await
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_the_issuer_open_and_tell_callers_apart() -> Result<()> {
    let issuer = Issuer::start().await?;
    let supervisor = trusting(hello()?, &issuer).start().await?;
    let (ann, bob) = (issuer.token("ann", &json!({}))?, issuer.token("bob", &json!({}))?);
    let (code, answer) = send(&supervisor, &ann).await?;
    assert_eq!((code, &answer["result"]["status"]["state"]), (200, &json!("completed")), "{answer}");
    let (task, context) = (&answer["result"]["id"], answer["result"]["contextId"].as_str());
    let (_, own) = call(&supervisor, &ann, "tasks/get", json!({"id": task})).await?;
    assert_eq!(&own["result"]["id"], task, "{own}");
    let (_, other) = call(&supervisor, &bob, "tasks/get", json!({"id": task})).await?;
    assert_eq!(other["error"]["code"], -32001, "{other}");
    let (_, other) = call(&supervisor, &bob, "message/send", message("and?", context)).await?;
    assert_eq!(other["error"]["code"], -32602, "{other}");
    // A token whose subject is the internal name of the shared key gives no access to that key.s tasks.
    let (_, sly) =
        call(&supervisor, &issuer.token("shared-key", &json!({}))?, "tasks/get", json!({"id": task})).await?;
    assert_eq!(sly["error"]["code"], -32001, "{sly}");
    assert_eq!(issuer.asked(), 1, "the keys are kept");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_other_token_opens() -> Result<()> {
    let (issuer, stranger) = (Issuer::start().await?, Issuer::start().await?);
    let supervisor = trusting(hello()?, &issuer).start().await?;
    let unsigned = issuer.token("ann", &json!({}))?;
    let (unsigned, _) = unsigned.rsplit_once('.').context("a token")?;
    let (claims, key) =
        (json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": 4_000_000_000_u64}), "one");
    let bad = [
        ("expired", issuer.token("ann", &json!({"exp": 1_000_000}))?, "it has expired"),
        ("for ever", issuer.token("ann", &json!({"exp": null}))?, "it lacks one of"),
        ("not yet", issuer.token("ann", &json!({"nbf": 4_000_000_000_u64}))?, "it is not good yet"),
        ("of another", issuer.token("ann", &json!({"iss": "https://evil.example.com"}))?, "another issuer"),
        ("for another", issuer.token("ann", &json!({"aud": "mail"}))?, "another audience"),
        ("for all", issuer.token("ann", &json!({"aud": null}))?, "it lacks one of"),
        ("nobody's", issuer.token("ann", &json!({"sub": null}))?, ""),
        ("empty", issuer.token("", &json!({}))?, "its subject"),
        ("forged", stranger.token("ann", &json!({}))?, "its signature is wrong"),
        ("unsigned", format!("{unsigned}."), ""),
        ("alg none", issuer.sign(key, &json!({"alg": "none", "kid": "one"}), &claims)?, ""),
        (
            "a shared secret",
            issuer.sign(key, &json!({"alg": "HS256", "kid": "one"}), &claims)?,
            "a way that is not",
        ),
        (
            "another algorithm",
            issuer.sign(key, &json!({"alg": "ES384", "kid": "one"}), &claims)?,
            "another algorithm",
        ),
        ("no token", "hello".to_owned(), ""),
        ("endless", "x".repeat(20_000), "too long"),
    ];
    for (what, token, reason) in bad {
        let (code, answer) = send(&supervisor, &token).await?;
        let message = answer["reason"].as_str().unwrap_or_default();
        ensure!(code == 401 && message.contains(reason), "{what}: {code} {answer}");
    }
    assert_eq!(reqwest::get(format!("{}/tools", supervisor.url())).await?.status(), 401);
    assert_eq!(send(&supervisor, &issuer.token("ann", &json!({}))?).await?.0, 200);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_is_found_and_unknown_ones_do_not_make_us_ask_for_ever() -> Result<()> {
    let issuer = Issuer::start().await?;
    let supervisor = trusting(hello()?, &issuer).start().await?;
    assert_eq!(send(&supervisor, &issuer.token("ann", &json!({}))?).await?.0, 200);
    let claims = json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": 4_000_000_000_u64});
    for number in 0..30 {
        let header = json!({"alg": "ES256", "kid": format!("guess-{number}")});
        let (code, answer) = send(&supervisor, &issuer.sign("one", &header, &claims)?).await?;
        assert_eq!(
            (code, answer["reason"].as_str().unwrap_or_default().contains("no such key")),
            (401, true),
            "{answer}"
        );
    }
    ensure!(issuer.asked() <= 3, "the issuer was asked {} times", issuer.asked());
    issuer.add_key("two")?;
    let token = issuer.token_by("two", "ann", &json!({}))?;
    supervisor.until("the new key is known", async || Ok(send(&supervisor, &token).await?.0 == 200)).await?;
    assert_eq!(send(&supervisor, &issuer.token("ann", &json!({}))?).await?.0, 200);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn either_the_key_or_a_token_opens_and_the_card_says_so() -> Result<()> {
    let issuer = Issuer::start().await?;
    let oauth2 = json!({"issuer": ISSUER, "audience": AUDIENCE, "jwksUri": issuer.url()});
    let scenario = Scenario::new().answers("*", "Hello.").set("auth", json!({"oauth2": oauth2}));
    let setup = scenario.setup()?;
    let supervisor = setup.clone().env("A2A_AUTH_SHARED_KEY", "s3cret").start().await?;
    assert_eq!(send(&supervisor, "s3cret").await?.0, 200);
    assert_eq!(send(&supervisor, &issuer.token("ann", &json!({}))?).await?.0, 200);
    assert_eq!(send(&supervisor, "s3creT").await?.0, 401);
    let (_, card) = supervisor.get("/.well-known/agent-card.json").await?;
    let card: Value = serde_json::from_str(&card)?;
    assert_eq!(card["security"], json!([{"bearer": []}, {"token": []}]), "{card}");
    assert_eq!(card["securitySchemes"]["token"]["bearerFormat"], "JWT", "{card}");
    ensure!(card["securitySchemes"]["token"].to_string().contains(ISSUER), "{card}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_of_the_page_on_authentication_are_good() -> Result<()> {
    let page = std::fs::read_to_string(programs::workspace().join("docs/authentication.md"))?;
    let examples: Vec<&str> =
        page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    ensure!(examples.len() == 3, "{examples:#?}");
    for example in examples {
        let head = "apiVersion: caipe.io/v1alpha1\nkind: CaipeSupervisor\nmetadata: { name: here }\n";
        let setup = Setup::new()?.file("supervisor.yaml", &format!("{head}{example}"))?;
        let output = setup.run(&["check", "-f", "supervisor.yaml"]).await?;
        ensure!(output.status.success(), "{example}{output:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_that_cannot_be_reached_is_not_the_callers_fault() -> Result<()> {
    let issuer = Issuer::start().await?;
    let token = issuer.token("ann", &json!({}))?;
    let supervisor = trusting(hello()?, &issuer).env("JWKS_URI", "http://127.0.0.1:9/keys").start().await?;
    let (code, answer) = send(&supervisor, &token).await?;
    assert_eq!(code, 503, "{answer}");
    Ok(())
}
