//! The database in Redis, for several processes. All keys have one hash tag.

use std::sync::LazyLock;
use std::time::Duration;

use async_trait::async_trait;
use caipe_store::{RedisConnection, RedisOptions};
use redis::{Cmd, FromRedisValue, Script};
use uuid::Uuid;

use super::{REMEMBERED, Running, Store, StoreError, THREAD_AGE, Thread};

/// Attempts of a claim whose response was lost.
const ATTEMPTS: usize = 2;

macro_rules! script {
    ($text:literal) => {
        LazyLock::new(|| Script::new($text))
    };
}

/// Takes a key that nobody has taken; the same token takes it again.
static CLAIM: LazyLock<Script> = script!(
    "local key = KEYS[1] .. ARGV[1]
     if redis.call('SET', key, ARGV[2], 'NX', 'EX', ARGV[3]) then return 1 end
     return redis.call('GET', key) == ARGV[2] and 1 or 0"
);

static REMOVE_RUNNING: LazyLock<Script> = script!(
    "local key, found = KEYS[1] .. 'running', redis.call('HGET', KEYS[1] .. 'running', ARGV[1])
     if found and cjson.decode(found).task == ARGV[2] then redis.call('HDEL', key, ARGV[1]) end"
);

/// Saves a turn of the owner, also one that nobody owns if it is new, and renews the lease.
static SAVE_TURN: LazyLock<Script> = script!(
    "local owner, lease, id, state, new = unpack(ARGV)
     local owners = KEYS[1] .. 'owners'
     if new == '1' then redis.call('HSETNX', owners, id, owner) end
     if redis.call('HGET', owners, id) ~= owner then return 0 end
     redis.call('SET', KEYS[1] .. 'lease:' .. owner, 1, 'PX', lease)
     redis.call('HSET', KEYS[1] .. 'turns', id, state)
     return 1"
);

static REMOVE_TURN: LazyLock<Script> = script!(
    "if redis.call('HGET', KEYS[1] .. 'owners', ARGV[2]) ~= ARGV[1] then return end
     redis.call('HDEL', KEYS[1] .. 'owners', ARGV[2])
     redis.call('HDEL', KEYS[1] .. 'turns', ARGV[2])"
);

static ADOPT_TURNS: LazyLock<Script> = script!(
    "local own, owners, held, taken = ARGV[1], redis.call('HGETALL', KEYS[1] .. 'owners'), {}, {}
     redis.call('SET', KEYS[1] .. 'lease:' .. own, 1, 'PX', ARGV[2])
     for at = 1, #owners, 2 do
       local id, owner = owners[at], owners[at + 1]
       if held[owner] == nil then held[owner] = redis.call('EXISTS', KEYS[1] .. 'lease:' .. owner) == 1 end
       if not held[owner] then
         redis.call('HSET', KEYS[1] .. 'owners', id, own)
         taken[#taken + 1] = redis.call('HGET', KEYS[1] .. 'turns', id) or nil
       end
     end
     return taken"
);

#[derive(Clone)]
pub(super) struct Redis {
    connection: RedisConnection,
    /// This process as an owner of turns.
    owner: String,
    lease: Duration,
}

impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redis").field("owner", &self.owner).finish_non_exhaustive()
    }
}

impl Redis {
    pub(super) fn open(options: &RedisOptions, lease: Duration) -> Result<Self, StoreError> {
        let connection = RedisConnection::new(options)?;
        Ok(Self { connection, owner: Uuid::new_v4().to_string(), lease })
    }

    async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, StoreError> {
        Ok(self.connection.query("use the database of the bot", command).await?)
    }

    async fn call<T: FromRedisValue>(&self, script: &Script, arguments: &[&str]) -> Result<T, StoreError> {
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Ok(self.connection.call("use the database of the bot", script, arguments).await?)
    }

    /// Whether a key was not taken before. A lost response does not count as an attempt of another caller.
    async fn claim(&self, name: &str, age: Duration) -> Result<bool, StoreError> {
        let (token, age) = (Uuid::new_v4().to_string(), age.as_secs().to_string());
        let mut outcome = Ok(false);
        for _ in 0..ATTEMPTS {
            outcome = self.call(&CLAIM, &[name, &token, &age]).await;
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }

    async fn put(&self, name: &str, value: &str, age: Duration) -> Result<(), StoreError> {
        let mut command = redis::cmd("SET");
        self.query(command.arg(self.connection.key(name)).arg(value).arg("EX").arg(age.as_secs())).await
    }

    async fn get(&self, name: &str) -> Result<Option<String>, StoreError> {
        self.query(redis::cmd("GET").arg(self.connection.key(name))).await
    }

    async fn save(&self, id: &str, state: &str, is_new: bool) -> Result<bool, StoreError> {
        let new = if is_new { "1" } else { "0" };
        self.call(&SAVE_TURN, &[&self.owner, &self.lease(), id, state, new]).await
    }

    fn lease(&self) -> String {
        self.lease.as_millis().to_string()
    }
}

/// The place of a thread.
fn place(channel: &str, thread: &str) -> String {
    format!("{channel}:{thread}")
}

#[async_trait]
impl Store for Redis {
    fn is_shared(&self) -> bool {
        true
    }

    /// Redis deletes what has expired.
    async fn forget_old(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn is_new(&self, id: &str) -> Result<bool, StoreError> {
        self.claim(&format!("handled:{id}"), REMEMBERED).await
    }

    async fn thread(&self, channel: &str, thread: &str) -> Result<Option<Thread>, StoreError> {
        let saved = self.get(&format!("thread:{}", place(channel, thread))).await?;
        Ok(saved.as_deref().map(serde_json::from_str).transpose()?)
    }

    async fn save_thread(&self, channel: &str, id: &str, thread: &Thread) -> Result<(), StoreError> {
        let saved = serde_json::to_string(thread)?;
        self.put(&format!("thread:{}", place(channel, id)), &saved, THREAD_AGE).await
    }

    async fn escalate(&self, channel: &str, thread: &str) -> Result<bool, StoreError> {
        self.claim(&format!("escalated:{}", place(channel, thread)), THREAD_AGE).await
    }

    async fn save_answer(&self, user: &str, task: &str) -> Result<(), StoreError> {
        self.put(&format!("answer:{user}"), task, REMEMBERED).await
    }

    async fn last_answer(&self, user: &str) -> Result<Option<String>, StoreError> {
        self.get(&format!("answer:{user}")).await
    }

    async fn set_running(&self, turn: &Running) -> Result<(), StoreError> {
        let mut command = redis::cmd("HSET");
        command.arg(self.connection.key("running")).arg(place(&turn.channel, &turn.thread));
        self.query(command.arg(serde_json::to_string(turn)?)).await
    }

    async fn running_in(&self, channel: &str, thread: &str) -> Result<Option<Running>, StoreError> {
        let mut command = redis::cmd("HGET");
        command.arg(self.connection.key("running")).arg(place(channel, thread));
        let saved: Option<String> = self.query(&command).await?;
        Ok(saved.as_deref().map(serde_json::from_str).transpose()?)
    }

    async fn running(&self) -> Result<Vec<Running>, StoreError> {
        let saved: Vec<String> = self.query(redis::cmd("HVALS").arg(self.connection.key("running"))).await?;
        Ok(saved.iter().map(|turn| serde_json::from_str(turn)).collect::<Result<_, _>>()?)
    }

    async fn remove_running(&self, channel: &str, thread: &str, task: &str) -> Result<(), StoreError> {
        self.call(&REMOVE_RUNNING, &[&place(channel, thread), task]).await
    }

    async fn begin_turn(&self, id: &str, state: &str) -> Result<bool, StoreError> {
        self.save(id, state, true).await
    }

    async fn save_turn(&self, id: &str, state: &str) -> Result<bool, StoreError> {
        self.save(id, state, false).await
    }

    async fn remove_turn(&self, id: &str) -> Result<(), StoreError> {
        self.call(&REMOVE_TURN, &[&self.owner, id]).await
    }

    async fn adopt_turns(&self) -> Result<Vec<String>, StoreError> {
        self.call(&ADOPT_TURNS, &[&self.owner, &self.lease()]).await
    }

    async fn release(&self) -> Result<(), StoreError> {
        self.query(redis::cmd("DEL").arg(self.connection.key(&format!("lease:{}", self.owner)))).await
    }
}
