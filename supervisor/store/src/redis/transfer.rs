//! Copies of the data of a server.

use async_trait::async_trait;
use jiff::Timestamp;

use super::encode::{Arguments, owner_of, place_of};
use super::error::{accepted, corrupt};
use super::{BACKEND, RedisStore, facts, read, scripts};
use crate::error::StoreError;
use crate::event_chunk::EventChunk;
use crate::json::decode;
use crate::transfer::{
    ConversationRecord, FactsRecord, IdPage, ImportBatch, ImportProgress, OwnerRecord, Record, RecordKind,
    StoredControl, StoredOutboxEntry, StoredPush, TaskContent, Transfer, out_of_step,
};
use crate::types::{TaskPhase, TaskRecord};

/// The number of bytes of a time in the members of an index.
const PLACE: usize = 16;

#[async_trait]
impl Transfer for RedisStore {
    /// Whether a client listens to the changes, as each supervisor does.
    async fn is_in_use(&self) -> Result<bool, StoreError> {
        let mut command = redis::cmd("PUBLISH");
        command.arg(self.connection.key("events")).arg(format!("{} ", self.sender));
        Ok(self.connection.query::<u64>("look for a supervisor", &command).await? > 0)
    }

    async fn list_ids(
        &self,
        kind: RecordKind,
        after: Option<&str>,
        limit: usize,
    ) -> Result<IdPage, StoreError> {
        let by_phase = |phase: &TaskPhase| format!("x:{}:a", phase.as_str());
        let (indexes, place) = match kind {
            RecordKind::Conversation => (vec!["touched".to_owned()], PLACE),
            RecordKind::Task => (read::PHASES.iter().map(by_phase).collect(), PLACE),
            RecordKind::FactOwner => (vec!["fact_owners".to_owned()], 0),
        };
        let (mut index, mut lower) = match after.and_then(|after| after.split_once(' ')) {
            Some((index, member)) => (index.parse().map_err(|_| corrupt("a place"))?, format!("({member}")),
            None => (0_usize, "-".to_owned()),
        };
        while let Some(name) = indexes.get(index) {
            let mut command = redis::cmd("ZRANGEBYLEX");
            command.arg(self.connection.key(name)).arg(&lower).arg("+").arg("LIMIT").arg(0).arg(limit);
            let members: Vec<String> = self.connection.query("read", &command).await?;
            if let Some(last) = members.last() {
                let next = Some(format!("{index} {last}"));
                let ids =
                    members.iter().filter_map(|member| member.get(place..)).map(str::to_owned).collect();
                return Ok(IdPage { ids, next });
            }
            (index, lower) = (index + 1, "-".to_owned());
        }
        Ok(IdPage::default())
    }

    async fn export_conversation(&self, context: &str) -> Result<Option<ConversationRecord>, StoreError> {
        let Some(stored) = read::conversation(&self.connection, context).await? else { return Ok(None) };
        let arguments = Arguments::of([context]);
        let (owner, touched): (String, String) =
            self.connection.call("read", &scripts::EXPORT_CONVERSATION, arguments).await?;
        let touched = time_of(&touched).ok_or_else(|| corrupt(&format!("conversation {context:?}")))?;
        let (context, owner) = (context.to_owned(), owner_from(&owner));
        Ok(Some(ConversationRecord { context, owner, touched, run: stored.run, lists: stored.lists }))
    }

    async fn export_task(&self, task: &str) -> Result<Option<TaskContent>, StoreError> {
        let arguments = Arguments::of([task]);
        let found: Option<Found> = self.connection.call("read", &scripts::EXPORT_TASK, arguments).await?;
        found.map(|found| content(task, found)).transpose()
    }

    async fn export_events(
        &self,
        task: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<EventChunk>, StoreError> {
        let mut command = redis::cmd("XRANGE");
        let key = self.connection.key(&format!("e:{task}"));
        command.arg(key).arg(after.saturating_add(1)).arg("+").arg("COUNT").arg(limit);
        let entries: Vec<(String, Vec<String>)> = self.connection.query("read", &command).await?;
        entries.into_iter().map(chunk).collect()
    }

    async fn unfinished_import(&self) -> Result<Option<ImportProgress>, StoreError> {
        let mut command = redis::cmd("HMGET");
        command.arg(self.connection.key("import")).arg("export").arg("records");
        let (export, records): (Option<String>, Option<u64>) =
            self.connection.query("read", &command).await?;
        Ok(export.zip(records).map(|(export, records)| ImportProgress { export, records }))
    }

    async fn begin_import(&self, export: &str) -> Result<(), StoreError> {
        let mut command = redis::cmd("HSET");
        command.arg(self.connection.key("import"));
        command.arg(&["export", export, "records", "0", "skips", "0"]);
        self.connection.query("import", &command).await
    }

    async fn import(&self, batch: ImportBatch) -> Result<u64, StoreError> {
        let arguments = arguments(batch)?;
        let result: Vec<String> = self.connection.call("import", &scripts::IMPORT, arguments).await?;
        if result.first().is_some_and(|code| code == "conflict") {
            return Err(out_of_step(BACKEND));
        }
        let left = accepted(result)?.pop();
        left.and_then(|left| left.parse().ok()).ok_or_else(|| corrupt("the result of an import"))
    }

    async fn finish_import(&self) -> Result<(), StoreError> {
        let mut command = redis::cmd("UNLINK");
        self.connection.query("import", command.arg(self.connection.key("import"))).await
    }
}

/// Record, owner, token, number, reserved and handled.
type Counters = (String, String, u64, u64, u64, u64);

/// What the script finds: counters, control messages, push configurations, outbox.
type Found = (Counters, Vec<(u64, String, String)>, Vec<(String, u64, String)>, Vec<(String, String)>);

fn content(task: &str, (counters, controls, pushes, outbox): Found) -> Result<TaskContent, StoreError> {
    let (record, owner, token, number, reserved, handled) = counters;
    let mut pushes: Vec<_> =
        pushes.into_iter().map(|(id, delivered, body)| StoredPush { id, delivered, body }).collect();
    pushes.sort_unstable_by(|a, b| a.id.cmp(&b.id));
    let entry = |(id, stored): (String, String)| {
        let (deadline, body) = stored.split_once(' ')?;
        Some(StoredOutboxEntry { id, deadline: deadline.parse().ok()?, body: body.to_owned() })
    };
    let outbox: Option<Vec<_>> = outbox.into_iter().map(entry).collect();
    let mut outbox = outbox.ok_or_else(|| corrupt("an outbox entry"))?;
    outbox.sort_unstable_by(|a, b| a.id.cmp(&b.id));
    let controls =
        controls.into_iter().map(|(number, id, body)| StoredControl { number, id, body }).collect();
    let (id, owner) = (task.to_owned(), owner_from(&owner));
    Ok(TaskContent { id, record, owner, token, number, reserved, handled, controls, pushes, outbox })
}

fn chunk((id, fields): (String, Vec<String>)) -> Result<EventChunk, StoreError> {
    let numbers = |first: &str| Some((first.parse().ok()?, id.split('-').next()?.parse().ok()?));
    match fields.as_slice() {
        [_, first, _, json] if let Some((first, last)) = numbers(first) => {
            Ok(EventChunk { first, last, json: json.clone() })
        }
        _ => Err(corrupt("an event")),
    }
}

/// The microseconds of a place; see [`place_of`].
fn time_of(place: &str) -> Option<i64> {
    u64::from_str_radix(place, 16).ok().map(|place| (place ^ (1 << 63)).cast_signed())
}

/// The owner of a conversation as the scripts compare it: empty for none, `-` for nobody, or `=` and the principal.
fn owner_from(text: &str) -> Option<OwnerRecord> {
    let principal = text.strip_prefix('=').map(str::to_owned);
    (!text.is_empty()).then_some(OwnerRecord { principal })
}

fn owner_text(owner: Option<&OwnerRecord>) -> String {
    owner.map(|owner| owner_of(owner.principal.as_deref())).unwrap_or_default()
}

fn arguments(batch: ImportBatch) -> Result<Arguments, StoreError> {
    let end = batch.begin + batch.records.len() as u64;
    let mut to = Arguments::of([&*batch.export]).and(batch.begin).and(end);
    for record in batch.records {
        match record {
            Record::Conversation(conversation) => add_conversation(&mut to, conversation),
            Record::Task(content) => add_task(&mut to, content)?,
            Record::Events(events) => {
                to.all(["events".to_owned(), events.task]);
                to.number(events.chunks.len() as u64);
                for (first, last, json) in events.chunks {
                    to.number(first);
                    to.number(last);
                    to.push(json);
                }
            }
            Record::Facts(facts) => add_facts(&mut to, facts)?,
        }
    }
    Ok(to)
}

fn add_facts(to: &mut Arguments, FactsRecord { owner, facts }: FactsRecord) -> Result<(), StoreError> {
    to.all(["facts".to_owned(), owner]);
    to.number(facts.len() as u64);
    for (id, fact) in facts {
        to.push(id);
        to.all(facts::encoded(&fact)?);
    }
    Ok(())
}

fn add_conversation(to: &mut Arguments, record: ConversationRecord) {
    let ConversationRecord { context, owner, touched, run, lists } = record;
    let touched = place_of(Timestamp::from_microsecond(touched).unwrap_or_default());
    to.all(["conversation".to_owned(), context, owner_text(owner.as_ref()), touched, run]);
    to.number(lists.len() as u64);
    for (list, items) in lists {
        to.push(list);
        to.number(items.len() as u64);
        to.all(items);
    }
}

fn add_task(to: &mut Arguments, content: TaskContent) -> Result<(), StoreError> {
    let TaskContent { id, record: json, owner, token, number, reserved, handled, controls, pushes, outbox } =
        content;
    let record: TaskRecord = decode(|| format!("the record of task {id:?}"), &json)?;
    let (owner_of_task, place) = (owner_of(record.owner.as_deref()), place_of(record.updated));
    to.all([
        "task".to_owned(),
        id,
        record.context,
        record.phase.as_str().to_owned(),
        owner_of_task,
        place,
        json,
    ]);
    for counter in [token, number, reserved, handled] {
        to.number(counter);
    }
    to.number(controls.last().map_or(handled, |last| last.number.max(handled)));
    to.push(owner_text(owner.as_ref()));
    to.number(controls.len() as u64);
    for StoredControl { number, id, body } in controls {
        to.number(number);
        to.all([id, body]);
    }
    to.number(pushes.len() as u64);
    for StoredPush { id, delivered, body } in pushes {
        to.push(id);
        to.number(delivered);
        to.push(body);
    }
    to.number(outbox.len() as u64);
    for StoredOutboxEntry { id, deadline, body } in outbox {
        to.all([id, format!("{deadline} {body}")]);
    }
    Ok(())
}
