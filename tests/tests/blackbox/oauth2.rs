//! `OAuth` 2.0 client credentials from end to end: a real authorization server, and clients with its tokens.

use anyhow::{Context, Result, ensure};
use caipe_tests::faulty_provider::{Mood, Provider};
use caipe_tests::oauth2::Credentials::{ReportBot, SlackBot};
use caipe_tests::oauth2::{AuthorizationServer, Credentials};
use caipe_tests::scenario::Scenario;
use caipe_tests::sdk::{Output, Program};
use caipe_tests::stream::{Answer, SseReader};
use caipe_tests::supervisor::{Setup, Supervisor, message};
use caipe_tests::token_issuer::AUDIENCE;
use serde_json::{Value, json};

const SCOPE: &str = "caipe.call";

fn hello() -> Result<Setup> {
    Scenario::new().answers("*", "Hello.").setup()
}

fn trusting(setup: Setup, server: &AuthorizationServer) -> Setup {
    let setup = setup.env("A2A_AUTH_OAUTH2", "true").env("JWKS_URI", &server.jwks_uri);
    setup.env("ISSUER", &server.issuer).env("AUDIENCE", AUDIENCE)
}

/// A call with this token: status, `WWW-Authenticate` and answer.
async fn call(
    supervisor: &Supervisor,
    token: &str,
    method: &str,
    params: Value,
) -> Result<(u16, String, Value)> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request = reqwest::Client::new().post(supervisor.url()).bearer_auth(token).json(&body);
    let answer = request.send().await?;
    let challenge = answer.headers().get("www-authenticate").map(|value| value.to_str().map(str::to_owned));
    Ok((answer.status().as_u16(), challenge.transpose()?.unwrap_or_default(), answer.json().await?))
}

async fn send(supervisor: &Supervisor, token: &str) -> Result<(u16, String, Value)> {
    call(supervisor, token, "message/send", message("hi", None)).await
}

async fn opens(supervisor: &Supervisor, token: &str) -> Result<bool> {
    let tools = reqwest::Client::new().get(format!("{}/tools", supervisor.url())).bearer_auth(token);
    Ok(tools.send().await?.status() == 200)
}

async fn until_expired(supervisor: &Supervisor, token: &str) -> Result<()> {
    supervisor.until("the token has expired", async || Ok(!opens(supervisor, token).await?)).await
}

/// What a service client reads of a stream.
async fn ask(client: &mut Program, text: &str, context: Option<&str>) -> Result<(Output, Answer)> {
    let output = client.ask(&json!({"do": "stream", "text": text, "context": context})).await?;
    let events = output.all("event")?.into_iter().cloned().collect();
    Ok((output, Answer::new(events)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_with_client_credentials_streams_an_answer() -> Result<()> {
    let Some(server) = AuthorizationServer::start().await? else { return Ok(()) };
    let setup = trusting(hello()?, &server).env("OAUTH2_REQUIRED_SCOPES", SCOPE);
    let supervisor = setup.env("OAUTH2_CLIENT_ID", SlackBot.id()).start().await?;
    let Some(mut client) = server.service_client(supervisor.url(), SCOPE, AUDIENCE)? else { return Ok(()) };
    let (output, answer) = ask(&mut client, "hi", None).await?;
    assert_eq!(supervisor.checked(answer)?.result()?, "Hello.", "{output:?}");
    // The same token again, and the task belongs to the client.
    let (_, next) = ask(&mut client, "hi again", None).await?;
    let get = json!({"do": "call", "method": "tasks/get", "params": {"id": next.task()}});
    let got = client.ask(&get).await?;
    assert_eq!(got.one("answer")?["result"]["id"], next.task(), "{got:?}");
    assert_eq!(*got.one("fetched")?, 1, "the token is kept");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_another_audience_issuer_scope_or_client_is_refused() -> Result<()> {
    let Some(server) = AuthorizationServer::start().await? else { return Ok(()) };
    let Some(other) = AuthorizationServer::start().await? else { return Ok(()) };
    let setup = trusting(hello()?, &server).env("OAUTH2_REQUIRED_SCOPES", SCOPE);
    let supervisor = setup.clone().env("OAUTH2_CLIENT_ID", SlackBot.id()).start().await?;
    let refused = async |token: &str, expected: (u16, &str, &str)| {
        let (status, challenge, answer) = send(&supervisor, token).await?;
        let reason = answer["reason"].as_str().unwrap_or_default();
        ensure!(status == expected.0 && reason.contains(expected.1), "{status} {answer}");
        assert_eq!(challenge, expected.2, "{answer}");
        anyhow::Ok(())
    };
    let invalid = r#"Bearer error="invalid_token""#;
    let insufficient = r#"Bearer error="insufficient_scope", scope="caipe.call""#;
    let of = async |client, scope, audience| server.token(client, scope, audience).await;
    assert_eq!(send(&supervisor, &of(SlackBot, "caipe.read caipe.call", AUDIENCE).await?).await?.0, 200);
    refused(&of(SlackBot, SCOPE, "mail").await?, (401, "another audience", invalid)).await?;
    refused(&of(SlackBot, "caipe.read", AUDIENCE).await?, (403, "caipe.call", insufficient)).await?;
    refused(&of(SlackBot, "", AUDIENCE).await?, (403, "caipe.call", insufficient)).await?;
    refused(&of(ReportBot, SCOPE, AUDIENCE).await?, (401, "a client that may not", invalid)).await?;
    let foreign = other.token(SlackBot, SCOPE, AUDIENCE).await?;
    refused(&foreign, (401, "no such key", invalid)).await?;
    drop(supervisor);

    // The key is right, but the supervisor expects another name of the issuer.
    let supervisor = setup.env("ISSUER", "https://id.example.com").start().await?;
    let (status, _, answer) = send(&supervisor, &of(SlackBot, SCOPE, AUDIENCE).await?).await?;
    ensure!(status == 401 && answer.to_string().contains("another issuer"), "{status} {answer}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_resource_requires_scopes_too() -> Result<()> {
    let Some(server) = AuthorizationServer::start().await? else { return Ok(()) };
    let oauth2 = json!({"issuer": server.issuer, "audience": AUDIENCE, "jwksUri": server.jwks_uri, "requiredScopes": [SCOPE]});
    let scenario = Scenario::new().answers("*", "Hello.").set("auth", json!({"oauth2": oauth2}));
    let supervisor = scenario.setup()?.start().await?;
    assert_eq!(send(&supervisor, &server.token(SlackBot, SCOPE, AUDIENCE).await?).await?.0, 200);
    assert_eq!(send(&supervisor, &server.token(SlackBot, "", AUDIENCE).await?).await?.0, 403);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_renews_its_token_goes_on_in_its_conversation() -> Result<()> {
    let Some(mut server) = AuthorizationServer::start().await? else { return Ok(()) };
    server.shorten_tokens(4).await?;
    let supervisor = trusting(hello()?, &server).start().await?;
    let Some(mut client) = server.service_client(supervisor.url(), SCOPE, AUDIENCE)? else { return Ok(()) };
    let (output, first) = ask(&mut client, "hi", None).await?;
    assert_eq!(first.result()?, "Hello.", "{output:?}");
    let token = output.one("token")?.as_str().context("no token")?.to_owned();
    until_expired(&supervisor, &token).await?;
    let (status, challenge, answer) = send(&supervisor, &token).await?;
    ensure!(status == 401 && answer.to_string().contains("it has expired"), "{status} {answer}");
    assert_eq!(challenge, r#"Bearer error="invalid_token""#);

    let (output, second) = ask(&mut client, "and now?", Some(first.context())).await?;
    assert_eq!((second.context(), second.result()?.as_str()), (first.context(), "Hello."), "{output:?}");
    assert_eq!(*output.one("fetched")?, 2, "{output:?}");
    let got =
        client.ask(&json!({"do": "call", "method": "tasks/get", "params": {"id": first.task()}})).await?;
    assert_eq!(got.one("answer")?["result"]["id"], first.task(), "{got:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_goes_on_when_its_token_expires() -> Result<()> {
    let Some(mut server) = AuthorizationServer::start().await? else { return Ok(()) };
    server.shorten_tokens(4).await?;
    let provider = Provider::start(Mood::Held).await?;
    let model = json!({"provider": "openai", "name": "gpt-4o", "baseUrl": provider.url()});
    let setup = Scenario::new().set("model", model).setup()?.env("OPENAI_API_KEY", "sk-test");
    let supervisor = trusting(setup, &server).start().await?;
    let token = server.token(SlackBot, "", AUDIENCE).await?;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": message("hi", None)});
    let request = reqwest::Client::new().post(supervisor.url()).bearer_auth(&token).json(&body);
    let mut stream = SseReader::new(request.send().await?)?;
    let mut events = stream.read_until(|event| event["kind"] == "task").await?;
    let task = json!({"id": events[0]["id"]});

    until_expired(&supervisor, &token).await?;
    assert_eq!(call(&supervisor, &token, "tasks/resubscribe", task.clone()).await?.0, 401);
    provider.becomes(Mood::Good);
    events.extend(stream.rest().await?);
    let answer = supervisor.checked(Answer::new(events))?;
    assert_eq!((answer.state(), answer.result()?.as_str()), ("completed", "Hello."), "{}", answer.outline());
    let renewed = server.token(SlackBot, "", AUDIENCE).await?;
    let (_, _, own) = call(&supervisor, &renewed, "tasks/get", task).await?;
    assert_eq!(own["result"]["status"]["state"], "completed", "{own}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn new_keys_of_the_server_are_followed() -> Result<()> {
    let Some(mut server) = AuthorizationServer::start().await? else { return Ok(()) };
    let supervisor = trusting(hello()?, &server).start().await?;
    let first = server.token(SlackBot, "", AUDIENCE).await?;
    assert_eq!(send(&supervisor, &first).await?.0, 200);

    server.rotate_keys(true).await?;
    let second = server.token(SlackBot, "", AUDIENCE).await?;
    supervisor.until("the new key is known", async || opens(&supervisor, &second).await).await?;
    assert_eq!(send(&supervisor, &first).await?.0, 200, "the old key is still in the key set");

    server.rotate_keys(false).await?;
    let third = server.token(SlackBot, "", AUDIENCE).await?;
    supervisor.until("the only key is known", async || opens(&supervisor, &third).await).await?;
    assert_eq!(send(&supervisor, &second).await?.0, 401, "its key was taken out");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn two_clients_do_not_see_each_others_tasks() -> Result<()> {
    let Some(server) = AuthorizationServer::start().await? else { return Ok(()) };
    let supervisor = trusting(hello()?, &server).start().await?;
    let token = async |client: Credentials| server.token(client, "", AUDIENCE).await;
    let (bot, other) = (token(SlackBot).await?, token(ReportBot).await?);
    let (_, _, answer) = send(&supervisor, &bot).await?;
    let (task, context) = (&answer["result"]["id"], answer["result"]["contextId"].as_str());
    for (method, params, code) in [
        ("tasks/get", json!({"id": task}), -32001),
        ("tasks/cancel", json!({"id": task}), -32001),
        ("message/send", message("and?", context), -32602),
    ] {
        let (_, _, answer) = call(&supervisor, &other, method, params).await?;
        assert_eq!(answer["error"]["code"], code, "{method}: {answer}");
    }
    // Another token of the same client is of the same owner.
    let (_, _, own) = call(&supervisor, &token(SlackBot).await?, "tasks/get", json!({"id": task})).await?;
    assert_eq!(own["result"]["id"], *task, "{own}");
    Ok(())
}
