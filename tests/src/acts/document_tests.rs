use super::*;

const FILE: &str = r#"
acts_version: "1.0"
spec_version: "1.0"
variables: {hook: "https://example.com"}
suites:
  - id: demo
    name: Demo
    tags: [inherited]
    tests:
      - id: DEMO-001
        name: "One of everything"
        level: should
        transport: [jsonrpc, rest]
        tags: [runner-special]
        preconditions: {capabilities: {streaming: true}}
        steps:
          - id: begin
            operation: send_message
            params: {message: {role: ROLE_USER}}
            capture: {tid: task.id}
            repeat: {until: "status.state in [DONE]", max_attempts: 5}
          - id: odd
            raw: {method: POST, path: "/", headers: {A2A-Version: "1.0"}, body_raw: "{"}
            expect: {status: 200, body: {owner: {type: "null"}}}
"#;

#[test]
fn a_file_is_read_as_it_is_written() {
    let document = parse(FILE).unwrap();
    let case = cases(&document, &Map::new()).remove(0);
    assert_eq!(case.suite, "demo");
    assert_eq!(case.test.level, Level::Should);
    assert_eq!(case.test.tags, ["runner-special", "inherited"]);
    assert!(case.test.is_special() && !case.test.is_about_the_client());
    assert_eq!(case.test.preconditions.capabilities.get("streaming"), Some(&true));
    let [begin, odd] = case.test.steps.as_slice() else { panic!("{:?}", case.test.steps) };
    assert!(matches!(begin.action(), Ok(Action::Operation("send_message", _))));
    let repeat = begin.repeat.clone().unwrap();
    assert_eq!((repeat.max_attempts, repeat.delay_ms, repeat.delay_after(3)), (5, 1000, 1000));
    // Quoted: a text, not a null and not a number.
    assert_eq!(odd.expect.clone().unwrap()["body"]["owner"]["type"], "null");
    let Action::RawConnection(raw) = odd.action().unwrap() else { panic!("{odd:?}") };
    assert_eq!(raw.headers["A2A-Version"], "1.0");
}

#[test]
fn delays_grow_as_configured() {
    let repeat = |backoff| Repeat { until: String::new(), max_attempts: 3, delay_ms: 100, backoff };
    let delays = |backoff| [1, 2, 3].map(|attempt| repeat(backoff).delay_after(attempt));
    assert_eq!(delays(Backoff::None), [100, 100, 100]);
    assert_eq!(delays(Backoff::Linear), [100, 200, 300]);
    assert_eq!(delays(Backoff::Exponential), [100, 200, 400]);
}

#[test]
fn another_major_version_and_idle_steps_are_refused() {
    assert!(parse("acts_version: \"2.0\"\nspec_version: \"1.0\"\n").is_err());
    assert!(Step { id: "idle".to_owned(), ..Step::default() }.action().is_err());
}
