-- Changes facts. ARGV: what, owner, id, value, milliseconds at which it expires or empty; for `expire` the time and the size of a step.
-- Returns how many were removed.
local what, owner, id = ARGV[1], ARGV[2], ARGV[3]

if what == 'save' then
  begin_writes()
  save_fact(owner, id, ARGV[4], ARGV[5])
  return { 'ok', '0' }
end
local removed = 0
if what == 'remove' then
  removed = remove_fact(owner, id)
elseif what == 'remove_all' then
  for _, fact in ipairs(redis.call('HKEYS', key('f', owner))) do removed = removed + remove_fact(owner, fact) end
else
  for _, found in ipairs(redis.call('ZRANGEBYSCORE', P .. 'facts', '-inf', ARGV[2], 'LIMIT', 0, ARGV[3])) do
    local size, rest = string.match(found, '^(%d+):(.*)$')
    remove_fact(string.sub(rest, 1, tonumber(size)), string.sub(rest, tonumber(size) + 1))
    removed = removed + 1
  end
end
return { 'ok', tostring(removed) }
