use serde_json::json;

use super::*;
use crate::builtin::{OfferedTool, builtin_tools};

const TASK: &str = "t";

fn caller(tools: &[&str]) -> (Caller, mpsc::Receiver<Progress>) {
    let client_tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
    let run = RunInfo { task: TASK.into(), client_tools, ..RunInfo::default() };
    let (progress, received) = mpsc::channel(4);
    (Caller { call: "c".to_owned(), run, files: Arc::default(), progress, status: None }, received)
}

#[tokio::test]
async fn a_call_has_the_answer_of_its_client_once() {
    let calls = ClientCalls::default();
    let (caller, mut progress) = caller(&["memory_save"]);
    let (asked, stopped) = (calls.clone(), CancellationToken::new());
    let call = tokio::spawn(async move { asked.ask("memory_save", caller, &stopped).await });
    assert_eq!(progress.recv().await, Some(Progress::AsksClient));
    assert_eq!(progress.recv().await, None, "the driver does not wait for more");
    for (task, id) in [("other", "c"), (TASK, "other")] {
        assert!(!calls.answer(task, id, ToolOutput::ok("no")), "{task} {id}");
    }
    assert!(calls.answer(TASK, "c", ToolOutput::error("full")));
    assert_eq!(call.await.unwrap(), ToolOutput::error("full"));
    assert!(!calls.answer(TASK, "c", ToolOutput::ok("late")));
    assert!(calls.lock().is_empty());
}

#[tokio::test]
async fn the_end_of_an_earlier_call_of_the_same_id_leaves_the_later_one() {
    let (calls, stopped) = (ClientCalls::default(), CancellationToken::new());
    let ask = |stopped: CancellationToken| {
        let ((caller, progress), asked) = (caller(&["memory_save"]), calls.clone());
        (tokio::spawn(async move { asked.ask("memory_save", caller, &stopped).await }), progress)
    };
    let (earlier, mut progress) = ask(stopped.clone());
    assert!(progress.recv().await.is_some());
    let (later, mut progress) = ask(CancellationToken::new());
    assert!(progress.recv().await.is_some());
    stopped.cancel();
    assert!(earlier.await.unwrap().is_error);
    assert!(calls.answer(TASK, "c", ToolOutput::ok("saved")));
    assert_eq!(later.await.unwrap(), ToolOutput::ok("saved"));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_answer_holds_up_no_run() {
    let calls = ClientCalls::default();
    let (announced, _progress) = caller(&["memory_save"]);
    let late = calls.ask("memory_save", announced, &CancellationToken::new()).await;
    assert!(late.is_error && late.content.contains("within 60 seconds"), "{late:?}");
    let (announced, _progress) = caller(&["memory_save"]);
    let stopped = CancellationToken::new();
    stopped.cancel();
    assert!(calls.ask("memory_save", announced, &stopped).await.is_error);
    let (other, mut progress) = caller(&["tasks_list"]);
    let refused = calls.ask("memory_save", other, &CancellationToken::new()).await;
    assert!(refused.is_error && refused.content.contains("does not answer calls"), "{refused:?}");
    assert_eq!(progress.recv().await, None, "the client is not asked");
    assert!(calls.lock().is_empty());
}

/// A source that echoes the call and the task, in this process or at its client.
#[derive(Debug)]
struct Echo(bool);

#[async_trait]
impl ToolSource for Echo {
    fn list(&self) -> Arc<[OfferedTool]> {
        let tools: Vec<_> = builtin_tools().iter().take(1).cloned().collect();
        if self.0 { OfferedTool::by_client(&tools) } else { tools.into() }
    }

    async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        caller: Caller,
        _: CancellationToken,
    ) -> ToolOutput {
        ToolOutput::ok(format!("{tool} {} {} {}", json!(arguments), caller.call, caller.run.task))
    }
}

#[tokio::test]
async fn only_what_this_process_answers_itself_is_announced_and_answered() {
    let (here, elsewhere) =
        (ClientSources(vec![Arc::new(Echo(false))]), ClientSources(vec![Arc::new(Echo(true))]));
    let names = here.names();
    let [tool] = names.as_slice() else { panic!("{names:?}") };
    assert!(elsewhere.names().is_empty());
    let ask = |sources: ClientSources, tool: &str| {
        let asked = ClientCall { call: "c".to_owned(), tool: tool.to_owned(), arguments: json!({ "a": 1 }) };
        let run = RunInfo { task: TASK.into(), ..RunInfo::default() };
        async move { sources.call(asked, run, CancellationToken::new()).await }
    };
    let tool = tool.clone();
    assert_eq!(ask(here, &tool).await, ToolOutput::ok(format!("{tool} {{\"a\":1}} c t")));
    for (sources, tool) in [(elsewhere, &*tool), (ClientSources(Vec::new()), "other")] {
        assert!(ask(sources, tool).await.is_error, "{tool}");
    }
}
