-- Writes a commit, unless it was written before.
local at = 0
local function take() at = at + 1; return ARGV[at] end
local function flag() return take() == '1' end

local sender, nonce, now = take(), take(), take()
local task, create, change, fence
if flag() then
  task = { id = take(), context = take(), phase = take(), owner = take(), place = take(), record = take() }
end
if flag() then create = { owner = take(), ttl = tonumber(take()) } end
if flag() then
  change = { context = take(), run = take(), lists = {} }
  for index = 1, tonumber(take()) do
    local list = { name = take(), keep = tonumber(take()), items = {} }
    for item = 1, tonumber(take()) do list.items[item] = take() end
    change.lists[index] = list
  end
end
local events, outbox = {}, {}
if flag() then
  fence = { task = take(), token = take(), number = take(), reserved = take(), handled = take(), release = flag() }
  for index = 1, tonumber(take()) do events[index] = { first = take(), last = take(), json = take() } end
  for index = 1, tonumber(take()) do outbox[index] = { id = take(), deadline = take(), body = take() } end
end

if create and task then
  if redis.call('EXISTS', key('t', task.id)) == 1 then
    -- The same commit, sent again because its response was lost.
    if redis.call('HGET', key('t', task.id), 'nonce') == nonce then return { 'ok' } end
    return { 'exists', task.id }
  end
  local owner = redis.call('HGET', key('c', task.context), 'owner')
  if task.owner ~= '-' and owner and owner ~= task.owner then return { 'foreign', task.context } end
end
local last
if fence then
  local stored = redis.call('HMGET', key('t', fence.task), 'token', 'number', 'last')
  if not stored[1] and not (task and task.id == fence.task) then return { 'unknown', fence.task } end
  if fence.token ~= (stored[1] or '0') then return { 'lost', fence.task } end
  if not above(fence.number, stored[2] or '0') then return { 'ok' } end
  last = stored[3] or '0'
  local previous = last
  for _, chunk in ipairs(events) do
    if not above(chunk.first, previous) then return { 'sequence', fence.task, previous, chunk.first } end
    previous = chunk.last
  end
end

begin_writes()
if task then
  local stored = key('t', task.id)
  if redis.call('HSETNX', stored, 'token', '0') == 0 then unindex(task.id) end
  redis.call('HSET', stored, 'record', task.record, 'context', task.context, 'phase', task.phase, 'owner', task.owner,
    'place', task.place)
  for _, index in ipairs(indexes(task.phase, task.context, task.owner)) do
    redis.call('ZADD', index, 0, task.place .. task.id)
  end
  redis.call('HSETNX', key('c', task.context), 'owner', task.owner)
  if create then
    redis.call('HSET', stored, 'holder', create.owner, 'until', whole(clock() + create.ttl), 'nonce', nonce)
    redis.call('HSETNX', key('c', task.context), 'turn', task.id)
  end
  index_lease(task.id)
end
if change then
  local stored = key('c', change.context)
  local touched = redis.call('HGET', stored, 'touched')
  if touched then redis.call('ZREM', P .. 'touched', touched .. change.context) end
  redis.call('ZADD', P .. 'touched', 0, now .. change.context)
  redis.call('HSET', stored, 'touched', now, 'run', change.run)
  for _, list in ipairs(change.lists) do
    local items = list_key(change.context, list.name)
    if list.keep == 0 then redis.call('UNLINK', items) else redis.call('LTRIM', items, 0, list.keep - 1) end
    for _, item in ipairs(list.items) do redis.call('RPUSH', items, item) end
    local update = redis.call('EXISTS', items) == 1 and 'SADD' or 'SREM'
    redis.call(update, key('l', change.context), list.name)
  end
end
if fence then
  local stored = key('t', fence.task)
  local old = redis.call('HMGET', stored, 'reserved', 'handled')
  if #events > 0 then last = events[#events].last end
  local handled = higher(fence.handled, old[2] or '0')
  redis.call('HSET', stored, 'number', fence.number, 'last', last, 'reserved', higher(fence.reserved, old[1] or '0'),
    'handled', handled)
  for _, chunk in ipairs(events) do
    redis.call('XADD', key('e', fence.task), chunk.last .. '-0', 'f', chunk.first, 'j', chunk.json)
  end
  for _, entry in ipairs(outbox) do
    redis.call('HSET', key('b', fence.task), entry.id, entry.deadline .. ' ' .. entry.body)
    redis.call('SADD', P .. 'outbox', fence.task)
  end
  -- The ids of the last handled messages are remembered.
  local forgotten = tonumber(handled) - 64
  if fence.handled ~= '0' and forgotten > 0 then
    for _, message in ipairs(redis.call('XRANGE', key('m', fence.task), '-', whole(forgotten))) do
      redis.call('HDEL', key('i', fence.task), message[2][2])
      redis.call('XDEL', key('m', fence.task), message[1])
    end
  end
  if fence.release then
    redis.call('HDEL', stored, 'holder', 'until')
    index_lease(fence.task)
  end
end
local changed = fence and fence.task or task and task.id
if changed then redis.call('PUBLISH', P .. 'events', sender .. ' ' .. changed) end
return { 'ok' }
