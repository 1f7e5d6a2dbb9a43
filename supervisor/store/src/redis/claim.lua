-- Takes or keeps a claim, or ends it if there is no time. ARGV: claim, owner, ttl.
local claimed = key('k', ARGV[1])
local holder = redis.call('GET', claimed)
if holder and holder ~= ARGV[2] then return { 'ok', '0' } end
if ARGV[3] == '' then redis.call('DEL', claimed) else redis.call('SET', claimed, ARGV[2], 'PX', ARGV[3]) end
return { 'ok', '1' }
