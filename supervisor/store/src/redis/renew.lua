-- Extends the lease, or releases it if there is no time to add.
local id, token, ttl = ARGV[1], ARGV[2], ARGV[3]
local stored = key('t', id)
local old = redis.call('HMGET', stored, 'token', 'holder')
if old[1] ~= token or not old[2] then return { 'lost', id } end
if ttl == '' then
  redis.call('HDEL', stored, 'holder', 'until')
else
  redis.call('HSET', stored, 'until', whole(clock() + tonumber(ttl)))
end
index_lease(id)
return { 'ok' }
