-- Part of every script. KEYS[1] is the prefix of all keys, a hash tag.
--
-- t:TASK    hash: record, context, phase, owner, place, token, number, last, reserved, handled, controls, holder, until, nonce
-- e:TASK    stream of events; the id is the number of a chunk's last event
-- m:TASK    stream of control messages; i:TASK maps their ids to their numbers
-- b:TASK    hash of the outbox; `outbox` is the set of tasks that have one
-- w:TASK    hash of push configurations; d:TASK how far each was delivered; `pushes` is the set of tasks with pending ones
-- f:OWNER   hash of the facts about a person by their ids; `facts` is the sorted set of those that expire, by the time;
--           `fact_owners` is the sorted set of the owners
-- k:CLAIM   the owner of a claim, which expires
-- leases sorted set of the tasks under way by the end of their lease, 0 if it was released
-- c:CONTEXT hash: run, touched, owner, turn; l:CONTEXT the set of its lists; s:CONTEXT:LIST one list; `touched` the index by age
-- import hash of an import that has not ended: export, records, skips
-- x:PHASE:a, x:PHASE:c:CONTEXT, x:PHASE:o:OWNER   sorted sets of tasks, each as its place and its id
local P = KEYS[1]
local PHASES = { 'submitted', 'working', 'input_required', 'completed', 'failed', 'canceled' }

local function key(kind, id) return P .. kind .. ':' .. id end

local function list_key(context, list) return P .. 's:' .. #context .. ':' .. context .. ':' .. list end

-- Compares whole numbers as decimal text, because numbers of Lua have 53 bits.
local function above(a, b) return #a > #b or (#a == #b and a > b) end

local function higher(a, b) if above(a, b) then return a end return b end

-- Milliseconds of the server's clock.
local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local function whole(number) return string.format('%.0f', number) end

local function is_under_way(phase) return phase == 'submitted' or phase == 'working' end

-- Enters a task under way into the index of leases, and removes another one.
local function index_lease(id)
  local stored = redis.call('HMGET', key('t', id), 'phase', 'until')
  if is_under_way(stored[1]) then
    redis.call('ZADD', P .. 'leases', stored[2] or '0', id)
  else
    redis.call('ZREM', P .. 'leases', id)
  end
end

-- The first write of a script. A server that is out of memory, or is a read-only replica, refuses it before anything is written;
-- it would not refuse a removal.
local function begin_writes() redis.call('SET', P .. 'format', '1') end

local function indexes(phase, context, owner)
  local found = { P .. 'x:' .. phase .. ':a', P .. 'x:' .. phase .. ':c:' .. context }
  if string.sub(owner, 1, 1) == '=' then found[3] = P .. 'x:' .. phase .. ':o:' .. string.sub(owner, 2) end
  return found
end

local function unindex(id)
  local old = redis.call('HMGET', key('t', id), 'phase', 'context', 'owner', 'place')
  if old[1] then
    for _, index in ipairs(indexes(old[1], old[2], old[3])) do redis.call('ZREM', index, old[4] .. id) end
  end
  return old[2]
end

local function forget_task(id)
  local context = unindex(id)
  for _, kind in ipairs({ 't', 'e', 'm', 'i', 'b', 'w', 'd' }) do redis.call('UNLINK', key(kind, id)) end
  redis.call('SREM', P .. 'outbox', id)
  redis.call('SREM', P .. 'pushes', id)
  redis.call('ZREM', P .. 'leases', id)
  return context
end

local function fact_member(owner, id) return #owner .. ':' .. owner .. id end

-- Without a time, the fact does not expire.
local function save_fact(owner, id, value, time)
  redis.call('HSET', key('f', owner), id, value)
  redis.call('ZADD', P .. 'fact_owners', 0, owner)
  if time == '' then
    redis.call('ZREM', P .. 'facts', fact_member(owner, id))
  else
    redis.call('ZADD', P .. 'facts', time, fact_member(owner, id))
  end
end

local function remove_fact(owner, id)
  local removed = redis.call('HDEL', key('f', owner), id)
  redis.call('ZREM', P .. 'facts', fact_member(owner, id))
  if redis.call('EXISTS', key('f', owner)) == 0 then redis.call('ZREM', P .. 'fact_owners', owner) end
  return removed
end

local function has_tasks(context, phases)
  for _, phase in ipairs(phases) do
    if redis.call('EXISTS', P .. 'x:' .. phase .. ':c:' .. context) == 1 then return true end
  end
  return false
end
