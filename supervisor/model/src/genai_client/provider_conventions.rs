//! The provider whose conventions a model follows, on any server.

use genai::ModelIden;
use genai::adapter::AdapterKind;

/// The adapter whose messages and events a model uses: Vertex AI serves Gemini and Claude in their own forms.
pub(super) fn of(model: &ModelIden) -> AdapterKind {
    match model.adapter_kind {
        AdapterKind::Vertex if model.model_name.namespace_and_name().1.starts_with("claude") => {
            AdapterKind::Anthropic
        }
        AdapterKind::Vertex => AdapterKind::Gemini,
        AdapterKind::OllamaCloud => AdapterKind::Ollama,
        #[cfg(feature = "bedrock-sigv4")]
        AdapterKind::BedrockSigv4 => AdapterKind::BedrockApi,
        kind => kind,
    }
}

/// Whether a tool call arrives whole, in one event.
pub(super) const fn sends_whole_calls(kind: AdapterKind) -> bool {
    matches!(kind, AdapterKind::Gemini | AdapterKind::Ollama)
}

/// Whether the provider signs thoughts, and rejects unsigned ones.
pub(super) const fn signs_thoughts(kind: AdapterKind) -> bool {
    matches!(kind, AdapterKind::Anthropic | AdapterKind::BedrockApi | AdapterKind::Gemini)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn habits_follow_the_model() {
        let table = [
            (AdapterKind::Vertex, "claude-sonnet-4-5", AdapterKind::Anthropic),
            (AdapterKind::Vertex, "gemini-2.5-pro", AdapterKind::Gemini),
            (AdapterKind::OllamaCloud, "qwen3", AdapterKind::Ollama),
            (AdapterKind::OpenAI, "claude-behind-a-proxy", AdapterKind::OpenAI),
        ];
        for (kind, name, expected) in table {
            assert_eq!(of(&ModelIden::new(kind, name)), expected, "{kind} {name}");
        }
    }
}
