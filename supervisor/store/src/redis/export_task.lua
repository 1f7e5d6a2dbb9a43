-- What is stored about a task, without its events. ARGV: task.
local id = ARGV[1]
local stored = redis.call('HMGET', key('t', id), 'record', 'context', 'token', 'number', 'reserved', 'handled')
if not stored[1] then return false end
local controls, pushes, outbox = {}, {}, {}
for _, message in ipairs(redis.call('XRANGE', key('m', id), '-', '+')) do
  controls[#controls + 1] = { string.match(message[1], '^%d+'), message[2][2], message[2][4] }
end
local bodies = redis.call('HGETALL', key('w', id))
for index = 1, #bodies, 2 do
  pushes[#pushes + 1] = { bodies[index], redis.call('HGET', key('d', id), bodies[index]), bodies[index + 1] }
end
local entries = redis.call('HGETALL', key('b', id))
for index = 1, #entries, 2 do outbox[#outbox + 1] = { entries[index], entries[index + 1] } end
local owner = redis.call('HGET', key('c', stored[2]), 'owner') or ''
return {
  { stored[1], owner, stored[3] or '0', stored[4] or '0', stored[5] or '0', stored[6] or '0' }, controls, pushes, outbox
}
