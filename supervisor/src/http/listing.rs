//! Pages of tasks (`ListTasks`, 1.0 section 3.1.4).

use caipe_a2a::A2aError;
use caipe_a2a::model::{ListTasksRequest, ListTasksResponse, Task, TaskState};
use caipe_store::{TaskFilter, TaskPhase, TaskPlace, TaskRecord};
use jiff::Timestamp;

use crate::binding;
use crate::run::{RunError, Runs};

/// A page that is larger than this, in bytes, ends early; its token continues it.
const MOST_BYTES: usize = 8 << 20;

/// A page of the caller's tasks; of all tasks if callers are not authenticated one by one.
pub(super) async fn page(
    runs: &Runs,
    request: &ListTasksRequest,
    caller: Option<&str>,
) -> Result<ListTasksResponse, A2aError> {
    let page_size = request.page_size();
    let Some(filter) = filter(request, caller)? else {
        return Ok(ListTasksResponse { page_size, ..ListTasksResponse::default() });
    };
    // The filter asks for one record more than fits, which shows whether there is a next page.
    let (mut records, total_size) = runs.tasks(&filter).await?;
    let mut more = records.len() > page_size as usize;
    records.truncate(page_size as usize);
    let (mut tasks, mut bytes, mut last) = (Vec::with_capacity(records.len()), 0, None);
    for record in &records {
        if bytes > MOST_BYTES {
            more = true;
            break;
        }
        if let Some(task) = task(runs, record, request).await? {
            bytes += size(&task);
            tasks.push(task);
        }
        last = Some(record);
    }
    let next_page_token = last.filter(|_| more).map(token).unwrap_or_default();
    Ok(ListTasksResponse { tasks, next_page_token, page_size, total_size })
}

/// The size of a task as JSON in bytes. A task that cannot be encoded fails when the page is encoded.
fn size(task: &Task) -> usize {
    serde_json::to_vec(task).map_or(0, |json| json.len())
}

/// The task on the page; `None` if it was removed since the page was read.
async fn task(
    runs: &Runs,
    record: &TaskRecord,
    request: &ListTasksRequest,
) -> Result<Option<Task>, RunError> {
    let task = if request.include_artifacts {
        runs.log(&record.id).await.map(|log| log.snapshot())
    } else {
        runs.summary(record)
    };
    let mut task = match task {
        Ok(task) => task,
        Err(RunError::UnknownTask(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    // The store has filtered and ordered the page by these two.
    (task.status.state, task.status.timestamp) = (binding::state(record.phase), Some(record.updated));
    task.trim_history(request.history_length);
    Ok(Some(task))
}

/// The filter for the store; `None` if no task can match.
fn filter(request: &ListTasksRequest, caller: Option<&str>) -> Result<Option<TaskFilter>, A2aError> {
    let phases = match request.status.map(phase) {
        None => Vec::new(),
        Some(Some(phase)) => vec![phase],
        Some(None) => return Ok(None),
    };
    Ok(Some(TaskFilter {
        context: request.context_id.clone(),
        phases,
        owner: caller.map(str::to_owned),
        since: request.status_timestamp_after,
        beyond: request.page_token.as_deref().map(place).transpose()?,
        limit: request.page_size() as usize + 1,
    }))
}

/// The phase of tasks in this state of the protocol, if there is one.
const fn phase(state: TaskState) -> Option<TaskPhase> {
    match state {
        TaskState::Submitted => Some(TaskPhase::Submitted),
        TaskState::Working => Some(TaskPhase::Working),
        TaskState::InputRequired => Some(TaskPhase::InputRequired),
        TaskState::Completed => Some(TaskPhase::Completed),
        TaskState::Failed => Some(TaskPhase::Failed),
        TaskState::Canceled => Some(TaskPhase::Canceled),
        TaskState::Rejected | TaskState::AuthRequired | TaskState::Unspecified => None,
    }
}

/// The position of the last task of a page. It names a task and is no offset, so it stays valid while tasks change.
fn token(record: &TaskRecord) -> String {
    format!("{:x}.{}", record.updated.as_microsecond(), record.id)
}

fn place(token: &str) -> Result<TaskPlace, A2aError> {
    let read = || {
        let (micros, id) = token.split_once('.')?;
        let updated = Timestamp::from_microsecond(i64::from_str_radix(micros, 16).ok()?).ok()?;
        Some(TaskPlace { updated, id: id.to_owned() })
    };
    read().ok_or_else(|| A2aError::invalid("pageToken", "this is not a token of ours; leave it out to start"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_back_and_nothing_else_is() {
        let updated = Timestamp::from_microsecond(1_767_225_600_123_456).unwrap();
        let wanted = TaskPlace { updated, id: "a.b-ü".to_owned() };
        let token = format!("{:x}.{}", updated.as_microsecond(), wanted.id);
        assert_eq!(place(&token).unwrap(), wanted);
        for bad in ["20", "x", "zz.t", ".t", "7fffffffffffffffff.t", "-7fffffffffffffff.t", "💥"] {
            assert_eq!(place(bad).unwrap_err().code(caipe_a2a::ProtocolVersion::V1_0), -32602, "{bad}");
        }
    }

    #[test]
    fn a_state_that_no_task_is_ever_in_matches_nothing() {
        let of = |status| ListTasksRequest { status: Some(status), ..ListTasksRequest::default() };
        assert!(filter(&of(TaskState::Rejected), None).unwrap().is_none());
        let found = filter(&of(TaskState::Working), Some("anna")).unwrap().unwrap();
        assert_eq!(
            (found.phases, found.owner.as_deref(), found.limit),
            (vec![TaskPhase::Working], Some("anna"), 51)
        );
    }
}
