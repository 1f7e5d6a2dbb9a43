use super::*;
use crate::rendered::{Budget, ToolBudget};
use crate::resolve::budgets::micro_dollars;

const OPENAI: &str = "model: { provider: openai, name: gpt-5-mini-2025-08-07 }\nagents: [{ name: jira }, { name: github, budget: { calls: 9 } }]\n";

#[test]
fn amounts_of_money_are_read_exactly() {
    for (text, expected) in [
        ("1", Some(1_000_000)),
        ("0.5", Some(500_000)),
        ("999999.999999", Some(999_999_999_999)),
        ("0.000001", Some(1)),
        ("1.", None),
        (".5", None),
        ("-1", None),
        ("1e3", None),
        ("0.0000001", None),
    ] {
        assert_eq!(micro_dollars(text), expected, "{text}");
    }
}

#[test]
fn an_agent_has_its_own_budget_or_that_of_all_agents() {
    let spec = resolve(
        &resource(&format!(
            "{OPENAI}budgets: {{ run: {{ seconds: 60 }}, agent: {{ tokens: 5 }}, tools: [{{ tools: [jira_*], calls: 2 }}] }}"
        )),
        &env(&[]),
    )
    .unwrap()
    .spec;
    assert_eq!(spec.budgets.run, Budget { time_ms: Some(60_000), ..Budget::default() });
    assert_eq!(spec.agents[0].budget, Some(Budget { tokens: Some(5), ..Budget::default() }));
    assert_eq!(spec.agents[1].budget, Some(Budget { calls: Some(9), ..Budget::default() }));
    assert_eq!((spec.budgets.tools[0].calls, spec.budgets.prices.len()), (2, 0));
    let plain = resolve(&resource(OPENAI), &env(&[])).unwrap().spec;
    assert!(plain.budgets.is_default() && plain.agents[0].budget.is_none());
}

#[test]
fn a_limited_cost_needs_the_price_of_each_model() {
    let with = |model: &str, rest: &str| {
        resource(&format!(
            "model: {{ provider: openai, name: {model} }}\nagents: []\nbudgets: {{ run: {{ costUsd: '0.5' }}{rest} }}"
        ))
    };
    let prices = |resource| resolve(&resource, &env(&[])).unwrap().spec.budgets.prices;
    let built_in = prices(with("gpt-5-mini-2025-08-07", ""));
    assert_eq!((built_in[0].input, built_in[0].cached, built_in[0].output), (250_000, 25_000, 2_000_000));
    for (name, input) in [
        ("gpt-5", 1_250_000),
        ("claude-opus-4@20250514", 15_000_000),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", 3_000_000),
        ("claude-3-5-haiku-latest", 800_000),
        ("global.anthropic.claude-opus-4-6-v1", 5_000_000),
        ("gemini-4-argon", 2_000_000),
    ] {
        assert_eq!(prices(with(&format!("'{name}'"), ""))[0].input, input, "{name}");
    }
    for other in ["gpt-5-pro", "gpt-5-codex", "claude-opus-4-9", "claude-haiku-5-5", "o3-pro"] {
        assert_eq!(faults(&with(other, ""), &[]).len(), 1, "{other} is another model");
    }
    let own = prices(with("mine", ", prices: [{ model: mine, inputUsd: '2', outputUsd: '3.5' }]"));
    assert_eq!((own[0].input, own[0].cached, own[0].output), (2_000_000, 2_000_000, 3_500_000));
    let missing = faults(&with("mine", ""), &[]);
    assert_eq!(
        missing,
        ["spec.budgets.prices: there is no price for the model `mine`, and a cost is limited: add its price"]
    );
}

#[test]
fn a_budget_of_tools_limits_something() {
    let with =
        |entry: &str| resource(&format!("agents: []\nbudgets: {{ tools: [{{ tools: [web_*], {entry} }}] }}"));
    let entry = "tokens: 7, costUsd: '0.5', callUsd: '0.01', seconds: 3";
    let spec = resolve(&with(entry), &env(&[])).unwrap().spec;
    let expected = ToolBudget {
        tools: vec!["web_*".to_owned()],
        calls: ToolBudget::ANY_CALLS,
        tokens: Some(7),
        cost: Some(500_000_000_000),
        price: Some(10_000_000_000),
        time_ms: Some(3000),
    };
    assert_eq!(spec.budgets.tools, [expected]);
    for (entry, fault) in [
        ("", "spec.budgets.tools[0]: nothing is limited: add calls, tokens, costUsd, seconds or callUsd"),
        (
            "costUsd: '1'",
            "spec.budgets.tools[0].costUsd: a call has no price, so the limit has no effect: add callUsd",
        ),
    ] {
        assert_eq!(faults(&with(entry), &[]), [fault]);
    }
}

#[test]
fn the_budget_of_another_program_is_refused() {
    let agents = "agents: [{ name: other, external: { url: 'https://a.example' }, budget: { calls: 1 } }]";
    assert_eq!(
        faults(&resource(agents), &[]),
        ["spec.agents[other].budget: an external agent or an image counts its own calls: remove budget"]
    );
}
