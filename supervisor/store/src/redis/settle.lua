redis.call('HDEL', key('b', ARGV[1]), ARGV[2])
if redis.call('EXISTS', key('b', ARGV[1])) == 0 then redis.call('SREM', P .. 'outbox', ARGV[1]) end
return { 'ok' }
