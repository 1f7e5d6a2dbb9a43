//! Senders, agents that ask, and what each sender may decide.

use std::collections::BTreeMap;
use std::sync::Arc;

use caipe_a2a::model::{Message, Metadata};
use caipe_crds::resource::approver::Approver;
use caipe_engine::{ASK_TOOL, AgentName, CallKind, CallStatus, Decision, PendingCall, Phase};
use serde_json::{Value, json};

use super::*;
use crate::agent::tests::worker;
use crate::agent::{Role, SelfService};

fn group(name: &str) -> Approver {
    Approver { group: Some(name.to_owned()), ..Approver::default() }
}

/// A supervisor whose approvers are the leads, for jira the owners of jira.
pub(in crate::run) fn supervisor() -> Agent {
    let resource = caipe_crds::default_resource();
    let mut spec = caipe_crds::resolve(&resource, &BTreeMap::new()).unwrap().spec;
    spec.approvers = vec![group("leads")];
    for agent in spec.agents.iter_mut().filter(|agent| agent.name == "jira") {
        agent.approvers = vec![group("jira-owners")];
    }
    let (spec, delegates, self_service) = (Arc::new(spec), Arc::default(), SelfService::default());
    Agent { role: Role::Supervisor { spec, delegates, self_service }, ..worker() }
}

fn waiting(agent: &str, call: &str, action: &str) -> PendingCall {
    let form = Form { id: call.to_owned(), action: action.to_owned(), ..Form::default() };
    PendingCall {
        id: call.to_owned(),
        name: "task".to_owned(),
        arguments: Value::Null,
        kind: CallKind::Delegation { agent: AgentName::new(agent) },
        status: CallStatus::Waiting { form, then: Box::new(CallStatus::Ready) },
        answered: None,
        step_of: None,
        approved: Vec::new(),
    }
}

fn sent(by: &str, approver_as: &[&str]) -> Request {
    let mut message = Message::user("m", "an answer");
    let members = [("sent_by", json!(by)), ("approver_as", json!(approver_as))];
    message.metadata = Some(Metadata::from_iter(members.map(|(key, value)| (key.to_owned(), value))));
    Request::read(&message).unwrap()
}

#[tokio::test]
async fn a_sender_decides_what_the_resource_says() {
    let agent = supervisor();
    let mut state = RunState::new(AgentName::new("supervisor"));
    state.phase = Phase::Waiting;
    state.calls =
        vec![waiting("jira", "j", "delete"), waiting("github", "g", "merge"), waiting("jira", "f", ASK_TOOL)];
    let authority = Authority { agent: &agent, owner: Some("sub:ann") };
    for (request, may) in [
        (sent("sub:ann", &[]), [false, false, true]),
        (sent("sub:ann", &["group jira-owners"]), [true, false, true]),
        (sent("sub:bob", &["group jira-owners"]), [true, false, true]),
        (sent("sub:bob", &["group leads"]), [false, true, false]),
        (sent("sub:bob", &["email leads", "group Leads"]), [false, false, false]),
        (sent("", &[]), [false, false, false]),
    ] {
        for (call, may) in ["j", "g", "f"].into_iter().zip(may) {
            let form = Form { id: call.to_owned(), ..Form::default() };
            let decision = BoundDecision::about(&form, Decision::Approve);
            let refusal = authority.refusal(&state, &request, &[decision]);
            assert_eq!(refusal.is_none(), may, "{request:?} {call} {refusal:?}");
        }
    }
}
