use caipe_crds::catalogue;
use rmcp::model::ToolAnnotations;
use serde_json::json;

use super::ToolClass::{Destructive, Read, Write};
use super::*;
use crate::mcp::Transport;

fn server(name: &str) -> ServerSpec {
    ServerSpec::new(name, Transport::http("http://x"))
}

fn hints(hints: serde_json::Value) -> ToolAnnotations {
    serde_json::from_value(hints).unwrap()
}

#[test]
fn the_name_says_what_a_tool_does_and_an_unknown_one_writes() {
    for (tool, expected) in [
        ("get_issue", Read),
        ("getIssue", Read),
        ("list-pods", Read),
        ("LIST_PODS", Read),
        ("jira_get_issue", Read),
        ("jira.search", Read),
        ("list_updated_issues", Read),
        ("get_commit_diff", Read),
        ("get_workflow_run", Read),
        ("list_merge_requests", Read),
        ("create_merge_request", Write),
        ("get_and_run", Write),
        ("get_and_merge", Destructive),
        ("create_issue", Write),
        ("get_or_create_page", Write),
        ("search_and_update", Write),
        ("frobnicate", Write),
        ("github_get_issue", Write),
        ("issue_get", Write),
        ("", Write),
        ("delete_issue", Destructive),
        ("jira_delete_issue", Destructive),
        ("list_and_delete", Destructive),
        ("removeMember", Destructive),
        ("rotate_key", Destructive),
        ("merge_pull_request", Destructive),
        ("get_d\u{435}lete", Destructive),
    ] {
        assert_eq!(tool_class(&server("jira"), tool, None), expected, "{tool:?}");
    }
}

#[test]
fn the_lists_of_a_server_come_before_the_name() {
    let mut spec = server("s");
    spec.reads = vec!["*_read".to_owned(), "delete_nothing".to_owned()];
    spec.destructive = vec!["get_rid_*".to_owned(), "both_read".to_owned()];
    for (tool, expected) in [
        ("issue_read", Read),
        ("delete_nothing", Read),
        ("get_rid_of", Destructive),
        ("both_read", Destructive),
        ("issue_write", Write),
    ] {
        assert_eq!(tool_class(&spec, tool, None), expected, "{tool}");
    }
}

#[test]
fn annotations_only_tighten() {
    let mut spec = server("s");
    spec.reads = vec!["peek".to_owned()];
    for (tool, annotations, expected) in [
        ("create_x", json!({"readOnlyHint": true}), Write),
        ("delete_x", json!({"readOnlyHint": true, "destructiveHint": false}), Destructive),
        ("get_x", json!({}), Read),
        ("get_x", json!({"readOnlyHint": false}), Write),
        ("get_x", json!({"destructiveHint": true}), Destructive),
        ("get_x", json!({"readOnlyHint": true, "destructiveHint": true}), Read),
        ("create_x", json!({"readOnlyHint": false, "destructiveHint": false}), Write),
        ("peek", json!({"readOnlyHint": false, "destructiveHint": true}), Destructive),
    ] {
        assert_eq!(
            tool_class(&spec, tool, Some(&hints(annotations.clone()))),
            expected,
            "{tool} {annotations}"
        );
    }
}

/// The tools that were seen to act unasked when the servers of the catalogue were started.
#[test]
fn the_tools_of_the_catalogue_are_known() {
    for (agent, tools, expected) in [
        (
            "github",
            "issue_read pull_request_read actions_get actions_list get_job_logs search_code list_commits",
            Read,
        ),
        ("github", "issue_write add_issue_comment create_branch update_pull_request", Write),
        ("github", "merge_pull_request push_files delete_file actions_run_trigger", Destructive),
        (
            "gitlab",
            "whoami get_project list_pipelines get_pipeline_job_output mr_discussions get_merge_request get_commit",
            Read,
        ),
        ("gitlab", "create_issue create_issue_note retry_pipeline_job", Write),
        ("gitlab", "cancel_pipeline push_files merge_merge_request", Destructive),
        ("aigateway", "list-available-models get-user-spend-activity", Read),
        ("aigateway", "create-llm-api-key", Write),
        ("aigateway", "rotate-llm-api-key", Destructive),
        ("jira", "jira_get_issue jira_search jira_get_transitions jira_batch_get_changelogs", Read),
        ("jira", "jira_create_issue jira_add_comment jira_transition_issue", Write),
        ("jira", "jira_delete_issue jira_move_issue", Destructive),
        ("confluence", "confluence_search confluence_get_page confluence_get_page_diff", Read),
        ("confluence", "confluence_delete_page confluence_set_page_restrictions", Destructive),
        ("argocd", "list_applications get_application_workload_logs get_resource_actions", Read),
        ("argocd", "sync_application update_application", Write),
        ("argocd", "delete_application run_resource_action", Destructive),
        ("pagerduty", "list_incidents get_user_data list_oncalls", Read),
        ("pagerduty", "manage_incidents create_incident add_responders", Write),
        ("pagerduty", "delete_team remove_team_member", Destructive),
        ("slack", "channels_list conversations_history conversations_replies users_search", Read),
        ("slack", "conversations_add_message", Write),
        ("webex", "list_webex_rooms get_webex_me", Read),
        ("webex", "send_webex_message", Write),
        ("webex", "delete_webex_room delete_webex_membership", Destructive),
        ("aws", "list_k8s_resources get_pod_logs", Read),
        ("aws", "manage_k8s_resource", Destructive),
        ("komodor", "get_clusters trigger_klaudia_rca get_klaudia_rca_results", Read),
        ("weather", "get_current_weather convert_time", Read),
        ("splunk", "splunk_get_indexes splunk_run_query", Read),
        ("splunk", "delete_index restart_splunk", Destructive),
        ("backstage", "catalog.get-catalog-entity", Read),
        ("backstage", "execute-template", Write),
        ("backstage", "catalog.unregister-entity", Destructive),
    ] {
        let known = &catalogue::find(agent).unwrap().servers[0];
        let mut spec = server(&known.name);
        (spec.reads, spec.destructive) = (known.reads.clone(), known.destructive.clone());
        for tool in tools.split(' ') {
            assert_eq!(tool_class(&spec, tool, None), expected, "{agent}: {tool}");
        }
    }
}
