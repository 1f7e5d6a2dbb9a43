-- Adds records, unless they are there. ARGV: id of the export, records before, records with these, then the records.
-- `import` is the hash of an import that has not ended.
local at = 0
local function take() at = at + 1; return ARGV[at] end

local export, before, after = take(), take(), take()
local mark = P .. 'import'
local found = redis.call('HMGET', mark, 'export', 'records', 'skips')
if found[1] ~= export or found[2] ~= before then return { 'conflict' } end
begin_writes()

local skips, left = found[3] == '1', 0

local function set_owner(context, owner)
  if owner ~= '' then redis.call('HSETNX', key('c', context), 'owner', owner) end
end

local function add_conversation()
  local context, owner, touched, run = take(), take(), take(), take()
  local stored = key('c', context)
  local is_new = redis.call('HEXISTS', stored, 'run') == 0
  if is_new then
    redis.call('HSET', stored, 'run', run, 'touched', touched)
    redis.call('ZADD', P .. 'touched', 0, touched .. context)
    set_owner(context, owner)
  else
    left = left + 1
  end
  for _ = 1, tonumber(take()) do
    local list = take()
    local items = list_key(context, list)
    for _ = 1, tonumber(take()) do
      local item = take()
      if is_new then redis.call('RPUSH', items, item) end
    end
    if is_new then redis.call('SADD', key('l', context), list) end
  end
end

local function add_task()
  local task = { id = take(), context = take(), phase = take(), owner = take(), place = take(), record = take() }
  local token, number, reserved, handled, controls, owner = take(), take(), take(), take(), take(), take()
  local id, stored = task.id, key('t', task.id)
  skips = redis.call('EXISTS', stored) == 1
  if skips then
    left = left + 1
  else
    redis.call('HSET', stored, 'record', task.record, 'context', task.context, 'phase', task.phase, 'owner', task.owner,
      'place', task.place, 'token', token, 'number', number, 'reserved', reserved, 'handled', handled, 'controls', controls)
    for _, index in ipairs(indexes(task.phase, task.context, task.owner)) do
      redis.call('ZADD', index, 0, task.place .. id)
    end
    index_lease(id)
    set_owner(task.context, owner)
  end
  for _ = 1, tonumber(take()) do
    local place, message, body = take(), take(), take()
    if not skips then
      redis.call('HSET', key('i', id), message, place)
      redis.call('XADD', key('m', id), place .. '-0', 'i', message, 'b', body)
    end
  end
  for _ = 1, tonumber(take()) do
    local push, delivered, body = take(), take(), take()
    if not skips then
      redis.call('HSET', key('w', id), push, body)
      redis.call('HSET', key('d', id), push, delivered)
      if delivered ~= '9223372036854775807' then redis.call('SADD', P .. 'pushes', id) end
    end
  end
  for _ = 1, tonumber(take()) do
    local entry, value = take(), take()
    if not skips then
      redis.call('HSET', key('b', id), entry, value)
      redis.call('SADD', P .. 'outbox', id)
    end
  end
end

local function add_events()
  local id = take()
  for _ = 1, tonumber(take()) do
    local first, last, json = take(), take(), take()
    if not skips then
      redis.call('XADD', key('e', id), last .. '-0', 'f', first, 'j', json)
      redis.call('HSET', key('t', id), 'last', last)
    end
  end
end

local function add_facts()
  local owner = take()
  for _ = 1, tonumber(take()) do
    local id, value, time = take(), take(), take()
    if redis.call('HEXISTS', key('f', owner), id) == 1 then
      left = left + 1
    else
      save_fact(owner, id, value, time)
    end
  end
end

local add = { conversation = add_conversation, task = add_task, events = add_events, facts = add_facts }
while at < #ARGV do add[take()]() end
redis.call('HSET', mark, 'records', after, 'skips', skips and '1' or '0')
return { 'ok', whole(left) }
