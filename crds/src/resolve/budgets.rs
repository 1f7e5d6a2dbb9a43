//! The budgets of runs, and the prices of models.

use crate::rendered::{Budget, Budgets, ModelChoice, ModelPrice, RenderedAgent, ToolBudget};
use crate::resource::agent::Agent;
use crate::resource::budget::{self as declared, ToolBudget as DeclaredTools};

use super::Context;
use super::prices::{PRICES_OF, built_in};

/// Micro-dollars of a dollar.
const DOLLAR: u64 = 1_000_000;

/// The budget of an agent's runs.
pub(super) fn of_agent(cx: &mut Context<'_>, agent: &Agent) -> Option<Budget> {
    let is_foreign = agent.external.is_some() || agent.image.is_some();
    if agent.budget.is_some() && is_foreign {
        let path = format!("spec.agents[{}].budget", agent.name);
        cx.fault(path, "an external agent or an image counts its own calls: remove budget");
    }
    let general = cx.resource.spec.budgets.as_ref().and_then(|budgets| budgets.agent.as_ref());
    agent.budget.as_ref().or(general).filter(|_| !is_foreign).map(budget)
}

/// The budgets of the supervisor and of tools. Every model must have a price if a cost is limited.
pub(super) fn budgets(cx: &mut Context<'_>, models: &[ModelChoice], agents: &[RenderedAgent]) -> Budgets {
    let declared = cx.resource.spec.budgets.clone().unwrap_or_default();
    let run = declared.run.as_ref().map(budget).unwrap_or_default();
    let is_priced = run.cost.is_some()
        || agents.iter().any(|agent| agent.budget.as_ref().is_some_and(|budget| budget.cost.is_some()));
    let mut prices: Vec<ModelPrice> = declared.prices.iter().filter(|_| is_priced).map(price).collect();
    let own = agents.iter().filter_map(|agent| agent.model.as_ref());
    for name in models.iter().chain(own).filter_map(|model| model.name.as_ref()).filter(|_| is_priced) {
        if prices.iter().any(|price| price.model == *name) {
            continue;
        }
        match built_in(name) {
            Some(price) => {
                let message = format!(
                    "the price of `{name}` is the list price of {PRICES_OF}: set the price that you pay"
                );
                cx.warn("spec.budgets.prices", message);
                prices.push(price);
            }
            None => cx.fault(
                "spec.budgets.prices",
                format!("there is no price for the model `{name}`, and a cost is limited: add its price"),
            ),
        }
    }
    let tools = declared.tools.iter().enumerate().map(|(at, tools)| tool_budget(cx, at, tools)).collect();
    Budgets { run, tools, prices }
}

/// An entry of `budgets.tools`. It limits something, or has a price that counts for the run.
fn tool_budget(cx: &mut Context<'_>, at: usize, declared: &DeclaredTools) -> ToolBudget {
    let budget = ToolBudget {
        tools: declared.tools.clone(),
        calls: declared.calls.unwrap_or(ToolBudget::ANY_CALLS),
        tokens: declared.tokens,
        cost: picodollars(declared.cost_usd.as_ref()),
        price: picodollars(declared.call_usd.as_ref()),
        time_ms: declared.seconds.map(milliseconds),
    };
    let path = format!("spec.budgets.tools[{at}]");
    if budget.cost.is_some() && budget.price.unwrap_or_default() == 0 {
        cx.fault(format!("{path}.costUsd"), "a call has no price, so the limit has no effect: add callUsd");
    } else if *declared == (DeclaredTools { tools: budget.tools.clone(), ..DeclaredTools::default() }) {
        cx.fault(path, "nothing is limited: add calls, tokens, costUsd, seconds or callUsd");
    }
    budget
}

fn budget(declared: &declared::Budget) -> Budget {
    Budget {
        calls: declared.calls,
        tokens: declared.tokens,
        cost: picodollars(declared.cost_usd.as_ref()),
        time_ms: declared.seconds.map(milliseconds),
    }
}

fn picodollars(amount: Option<&String>) -> Option<u64> {
    amount.and_then(|amount| micro_dollars(amount)).map(|amount| amount * DOLLAR)
}

fn milliseconds(seconds: u32) -> u64 {
    u64::from(seconds) * 1000
}

fn price(declared: &declared::ModelPrice) -> ModelPrice {
    let amount = |text: &str| micro_dollars(text).unwrap_or_default();
    let input = amount(&declared.input_usd);
    ModelPrice {
        model: declared.model.clone(),
        input,
        cached: declared.cached_input_usd.as_deref().map_or(input, amount),
        output: amount(&declared.output_usd),
    }
}

/// The micro-dollars of an amount such as `0.50`; `None` if the text is not one.
pub(crate) fn micro_dollars(text: &str) -> Option<u64> {
    let (dollars, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |digits: &str| digits.len() <= 6 && digits.bytes().all(|digit| digit.is_ascii_digit());
    if !is_number(dollars) || !is_number(fraction) || dollars.is_empty() || text.ends_with('.') {
        return None;
    }
    let fraction: u64 = format!("{fraction:0<6}").parse().ok()?;
    Some(dollars.parse::<u64>().ok()? * DOLLAR + fraction)
}
