-- The tasks under way whose lease has ended or was released, and their records. ARGV: limit.
local found = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', P .. 'leases', '-inf', whole(clock()), 'LIMIT', 0, ARGV[1])) do
  found[#found + 1] = id
  found[#found + 1] = redis.call('HGET', key('t', id), 'record')
end
return found
