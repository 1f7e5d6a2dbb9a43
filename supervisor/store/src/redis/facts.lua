-- Changes facts. ARGV: what, owner, id, value, milliseconds at which it expires or empty; for `expire` the time and the size of a step.
-- Returns how many were removed.
local what, owner, id = ARGV[1], ARGV[2], ARGV[3]
local index = P .. 'facts'

local function member(of, fact) return #of .. ':' .. of .. fact end

if what == 'save' then
  begin_writes()
  redis.call('HSET', key('f', owner), id, ARGV[4])
  if ARGV[5] == '' then
    redis.call('ZREM', index, member(owner, id))
  else
    redis.call('ZADD', index, ARGV[5], member(owner, id))
  end
  return { 'ok', '0' }
end
local removed = 0
if what == 'remove' then
  removed = redis.call('HDEL', key('f', owner), id)
  redis.call('ZREM', index, member(owner, id))
elseif what == 'remove_all' then
  for _, fact in ipairs(redis.call('HKEYS', key('f', owner))) do
    redis.call('ZREM', index, member(owner, fact))
    removed = removed + 1
  end
  redis.call('UNLINK', key('f', owner))
else
  for _, found in ipairs(redis.call('ZRANGEBYSCORE', index, '-inf', ARGV[2], 'LIMIT', 0, ARGV[3])) do
    local size, rest = string.match(found, '^(%d+):(.*)$')
    local of, fact = string.sub(rest, 1, tonumber(size)), string.sub(rest, tonumber(size) + 1)
    redis.call('HDEL', key('f', of), fact)
    redis.call('ZREM', index, found)
    removed = removed + 1
  end
end
return { 'ok', tostring(removed) }
