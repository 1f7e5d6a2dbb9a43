//! Ids and metadata of what is sent.

use caipe_engine::AgentName;

use super::*;
use crate::delegation::ParentCall;

fn delegation(context: &str, user: Option<&str>, agent: &str, task: &str, call: &str) -> Delegation {
    Delegation {
        call: call.to_owned(),
        agent: AgentName::new(agent),
        prompt: "look".to_owned(),
        resume: None,
        run: RunInfo {
            context: context.into(),
            task: task.into(),
            trace_id: "0af7651916cd43dd8448eb211c80319c".into(),
            user: user.map(Into::into),
            ..RunInfo::default()
        },
    }
}

#[test]
fn ids_are_the_same_for_the_same_call_and_for_no_other() {
    let ids = Ids::of(&delegation("c", Some("a@x"), "jira", "t", "1"));
    assert_eq!(ids, Ids::of(&delegation("c", Some(" A@X "), "Jira", "t", "1")));
    let later = Ids::of(&delegation("c", Some("a@x"), "jira", "t2", "1"));
    assert_eq!(ids.memory, later.memory, "the conversation with an agent goes on");
    assert!(ids.context != later.context && ids.message != later.message);
    for other in [
        delegation("d", Some("a@x"), "jira", "t", "1"),
        delegation("c", Some("b@x"), "jira", "t", "1"),
        delegation("c", None, "jira", "t", "1"),
        delegation("c", Some("a@x"), "github", "t", "1"),
        // Parts that are the same text when they are put together.
        delegation("ca", Some("@x"), "jira", "t", "1"),
    ] {
        let other = Ids::of(&other);
        assert!(ids.memory != other.memory && ids.context != other.context && ids.message != other.message);
    }
    assert_ne!(ids.context, Ids::of(&delegation("c", Some("a@x"), "jira", "t", "2")).context, "two at once");
}

/// Before, equal calls of two agents that work for the same task had one id, so that the second agent got no task.
#[test]
fn ids_depend_on_the_calls_on_the_way_and_the_message_names_the_agents() {
    let parent = |call: &str, agent: &str| ParentCall { call: call.to_owned(), agent: AgentName::new(agent) };
    let below = |parents: &[ParentCall]| {
        let mut delegation = delegation("c", None, "jira", "t", "1");
        delegation.run.parents = parents.into();
        delegation
    };
    let delegations = [
        below(&[]),
        below(&[parent("1", "first")]),
        below(&[parent("2", "first")]),
        below(&[parent("1", "first"), parent("1", "second")]),
        below(&[parent("11", "first")]),
    ];
    let contexts: std::collections::BTreeSet<String> =
        delegations.iter().map(|delegation| Ids::of(delegation).context).collect();
    assert_eq!(contexts.len(), delegations.len());
    let message = opening(&delegations[3], &Ids::of(&delegations[3]), &[]);
    assert_eq!(crate::binding::Request::read(&message).unwrap().delegation_path, ["first", "second", "jira"]);
}

#[test]
fn the_message_names_the_calls_that_a_person_has_approved() {
    let mut delegation = delegation("c", None, "jira", "t", "1");
    let call = json!({ "tool": "delete", "arguments": { "id": 7 }, "digest": "d" });
    let call: caipe_engine::ApprovedCall = serde_json::from_value(call).unwrap();
    delegation.run.approved = [call.clone()].into();
    let ids = Ids::of(&delegation);
    let request = crate::binding::Request::read(&opening(&delegation, &ids, &[])).unwrap();
    assert_eq!(request.approved_calls, [call]);
}

#[test]
fn who_asks_is_in_the_metadata_and_not_in_the_text() {
    let delegation = delegation("c", Some("a@x"), "jira", "t", "1");
    let ids = Ids::of(&delegation);
    let message = opening(&delegation, &ids, &[]);
    assert_eq!(message.text(), "look");
    assert_eq!(message.context_id.as_deref(), Some(ids.context.as_str()));
    let metadata = message.metadata.unwrap();
    assert_eq!(metadata["user_email"], "a@x");
    assert_eq!(metadata["trace_id"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(metadata["context_id"], ids.memory.as_str());
    assert!(!metadata.contains_key("require_approval"));
}

#[test]
fn the_message_names_the_tools_that_need_approval() {
    let mut delegation = delegation("c", None, "jira", "t", "1");
    delegation.run.require_approval = ["push_*".to_owned()].into();
    let message = opening(&delegation, &Ids::of(&delegation), &["delete_*".to_owned()]);
    let request = crate::binding::Request::read(&message).unwrap();
    assert_eq!(request.require_approval, ["delete_*", "push_*"]);
}

#[test]
fn the_message_names_the_tools_of_this_agent_that_a_person_has_allowed() {
    let mut delegation = delegation("c", None, "jira", "t", "1");
    let tools = |name: &str| [name.to_owned()].into();
    let allowed = [(AgentName::new("jira"), tools("comment")), (AgentName::new("github"), tools("merge"))];
    delegation.run.always_allowed = std::sync::Arc::new(allowed.into());
    let message = opening(&delegation, &Ids::of(&delegation), &[]);
    assert_eq!(crate::binding::Request::read(&message).unwrap().always_allowed, ["comment"]);
}

#[test]
fn an_answer_goes_to_the_task_that_asked() {
    let delegation = delegation("c", None, "jira", "t", "1");
    let answered = Answered {
        form: form::in_words("jira", None),
        decisions: vec![caipe_engine::Decision::Approve],
        ..Answered::default()
    };
    let message = answer(&delegation, &Ids::of(&delegation), "remote", "there", &answered, &[]);
    assert_eq!((message.task_id.as_deref(), message.context_id.as_deref()), (Some("remote"), Some("there")));
    let nowhere = answer(&delegation, &Ids::of(&delegation), "remote", "", &answered, &[]);
    assert_eq!(nowhere.context_id, None, "the agent never named one");
}

#[test]
fn the_trace_goes_along_if_its_id_is_one() {
    let header = traceparent("0af7651916cd43dd8448eb211c80319c", "m").unwrap();
    let parts: Vec<&str> = header.split('-').collect();
    assert_eq!(
        (parts[0], parts[1], parts[2].len(), parts[3]),
        ("00", "0af7651916cd43dd8448eb211c80319c", 16, "01")
    );
    for id in ["", "0AF7651916CD43DD8448EB211C80319C", "00000000000000000000000000000000", "x"] {
        assert_eq!(traceparent(id, "m"), None, "{id}");
    }
}
