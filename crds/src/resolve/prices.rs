//! The list prices of well-known models.

use crate::rendered::ModelPrice;

/// The date of the prices.
pub(super) const PRICES_OF: &str = "2026-11-25";

/// The name of a model, and micro-dollars for a million tokens that it reads, reads from the cache, and writes.
///
/// From the price list of `litellm` 1.110.2 (`model_prices_and_context_window.json`); those of Anthropic also from
/// <https://platform.claude.com/docs/en/about-claude/pricing>. Prices of prompts below 200,000 tokens: `gemini-2.5-pro`, `gpt-5.4`,
/// `gpt-5.5` and `gpt-5.6` cost more above 200,000 or 272,000. A model that costs more for shorter prompts is left out, such as
/// `claude-haiku-5-5`, because a limit would not hold.
const PRICES: [(&str, u64, u64, u64); 48] = [
    ("claude-3-5-haiku", 800_000, 80_000, 4_000_000),
    ("claude-3-5-sonnet", 3_000_000, 300_000, 15_000_000),
    ("claude-3-7-sonnet", 3_000_000, 300_000, 15_000_000),
    ("claude-fable-5", 10_000_000, 1_000_000, 50_000_000),
    ("claude-fable-5-1", 10_000_000, 250_000, 50_000_000),
    ("claude-haiku-4-5", 1_000_000, 100_000, 5_000_000),
    ("claude-opus-4", 15_000_000, 1_500_000, 75_000_000),
    ("claude-opus-4-1", 15_000_000, 1_500_000, 75_000_000),
    ("claude-opus-4-5", 5_000_000, 500_000, 25_000_000),
    ("claude-opus-4-6", 5_000_000, 500_000, 25_000_000),
    ("claude-opus-4-7", 5_000_000, 500_000, 25_000_000),
    ("claude-opus-4-8", 5_000_000, 500_000, 25_000_000),
    ("claude-opus-5", 5_000_000, 500_000, 25_000_000),
    ("claude-opus-5-5", 4_000_000, 200_000, 20_000_000),
    ("claude-sonnet-4", 3_000_000, 300_000, 15_000_000),
    ("claude-sonnet-4-5", 3_000_000, 300_000, 15_000_000),
    ("claude-sonnet-4-6", 3_000_000, 300_000, 15_000_000),
    ("claude-sonnet-5", 2_000_000, 200_000, 10_000_000),
    ("claude-sonnet-5-5", 2_000_000, 100_000, 10_000_000),
    ("gemini-2.5-flash", 300_000, 30_000, 2_500_000),
    ("gemini-2.5-flash-lite", 100_000, 10_000, 400_000),
    ("gemini-2.5-pro", 1_250_000, 125_000, 10_000_000),
    ("gemini-3.1-flash-lite", 250_000, 25_000, 1_500_000),
    ("gemini-3.5-flash", 1_500_000, 150_000, 9_000_000),
    ("gemini-3.5-flash-lite", 300_000, 30_000, 2_500_000),
    ("gemini-3.6-flash", 750_000, 75_000, 3_750_000),
    ("gemini-3.7-flash", 750_000, 75_000, 3_750_000),
    ("gemini-3.8-flash", 750_000, 75_000, 3_750_000),
    ("gemini-4-argon", 2_000_000, 100_000, 10_000_000),
    ("gemini-4-hydrogen", 1_500_000, 75_000, 7_500_000),
    ("gpt-4.1", 2_000_000, 500_000, 8_000_000),
    ("gpt-4.1-mini", 400_000, 100_000, 1_600_000),
    ("gpt-4.1-nano", 100_000, 25_000, 400_000),
    ("gpt-4o", 2_500_000, 1_250_000, 10_000_000),
    ("gpt-4o-mini", 150_000, 75_000, 600_000),
    ("gpt-5", 1_250_000, 125_000, 10_000_000),
    ("gpt-5-mini", 250_000, 25_000, 2_000_000),
    ("gpt-5-nano", 50_000, 5_000, 400_000),
    ("gpt-5.1", 1_250_000, 125_000, 10_000_000),
    ("gpt-5.2", 1_750_000, 175_000, 14_000_000),
    ("gpt-5.4", 2_500_000, 250_000, 15_000_000),
    ("gpt-5.4-mini", 750_000, 75_000, 4_500_000),
    ("gpt-5.4-nano", 200_000, 20_000, 1_250_000),
    ("gpt-5.5", 5_000_000, 500_000, 30_000_000),
    ("gpt-5.6", 4_000_000, 400_000, 20_000_000),
    ("o3", 2_000_000, 500_000, 8_000_000),
    ("o3-mini", 1_100_000, 550_000, 4_400_000),
    ("o4-mini", 1_100_000, 275_000, 4_400_000),
];

/// The list price of a model or of one of its dated releases. Other names that begin with its own are other models, such as
/// `gpt-5-pro`.
pub(super) fn built_in(model: &str) -> Option<ModelPrice> {
    // `us.anthropic.claude-sonnet-4-…` of Amazon Bedrock is the model of Anthropic.
    let name = model.rsplit_once("anthropic.").map_or(model, |(_, name)| name);
    let (_, input, cached, output) = PRICES.iter().find(|(known, ..)| is_release(name, known))?;
    Some(ModelPrice { model: model.to_owned(), input: *input, cached: *cached, output: *output })
}

/// Whether a name is that of the model, perhaps with a date: `gpt-4o-2024-08-06`, `claude-opus-4@20250514`, `o3-latest`.
fn is_release(name: &str, model: &str) -> bool {
    let Some(rest) = name.strip_prefix(model) else { return false };
    let release = rest.strip_prefix(['-', '@']).unwrap_or_default();
    let is_date = release.len() >= 4 && release.bytes().take(4).all(|byte| byte.is_ascii_digit());
    // Amazon Bedrock numbers its releases: `anthropic.claude-opus-4-6-v1`.
    rest.is_empty() || ["latest", "v1"].contains(&release) || is_date
}
