-- ARGV: context, task. Returns the other task that has the turn.
local stored, task = key('c', ARGV[1]), ARGV[2]
local other = redis.call('HGET', stored, 'turn')
if other == task then return { 'ok' } end
if other then
  local held = redis.call('HMGET', key('t', other), 'phase', 'until')
  if is_under_way(held[1]) or (held[2] and tonumber(held[2]) > clock()) then return { 'ok', other } end
end
begin_writes()
redis.call('HSET', stored, 'turn', task)
return { 'ok' }
