local id, owner, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3])
local stored = key('t', id)
local old = redis.call('HMGET', stored, 'token', 'holder', 'until', 'reserved', 'handled', 'controls')
if not old[1] then return { 'unknown', id } end
local now = clock()
if old[2] and old[2] ~= owner and tonumber(old[3]) > now then return { 'taken', id, old[2], old[3] } end
begin_writes()
local token = redis.call('HINCRBY', stored, 'token', 1)
redis.call('HSET', stored, 'number', '0', 'holder', owner, 'until', whole(now + ttl))
index_lease(id)
local waits = above(old[6] or '0', old[5] or '0') and '1' or '0'
return { 'ok', whole(token), old[4] or '0', waits }
