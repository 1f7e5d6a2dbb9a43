local id, message, body, sender, most = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local old = redis.call('HMGET', key('t', id), 'token', 'handled', 'controls')
if not old[1] then return { 'unknown', id } end
if redis.call('HEXISTS', key('i', id), message) == 1 then return { 'ok' } end
local handled = old[2] or '0'
local last = tonumber(higher(old[3] or '0', handled))
if last - tonumber(handled) >= most then return { 'full', id } end
begin_writes()
local number = whole(last + 1)
redis.call('HSET', key('t', id), 'controls', number)
redis.call('HSET', key('i', id), message, number)
redis.call('XADD', key('m', id), number .. '-0', 'i', message, 'b', body)
redis.call('PUBLISH', P .. 'controls', sender .. ' ' .. id)
return { 'ok' }
