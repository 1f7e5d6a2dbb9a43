-- Changes a push configuration. ARGV: what, task, id, body, number.
local what, id, push, body, number = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local done = '9223372036854775807'
local bodies, delivered = key('w', id), key('d', id)
if what == 'put' then
  if redis.call('EXISTS', key('t', id)) == 0 then return { 'unknown', id } end
  begin_writes()
  redis.call('HSET', bodies, push, body)
  redis.call('HSET', delivered, push, number)
elseif redis.call('HEXISTS', bodies, push) == 0 then
  return { 'ok' }
elseif what == 'delivered' then
  begin_writes()
  redis.call('HSET', delivered, push, higher(number, redis.call('HGET', delivered, push) or '0'))
else
  redis.call('HDEL', bodies, push)
  redis.call('HDEL', delivered, push)
end
local update = 'SREM'
for _, seq in ipairs(redis.call('HVALS', delivered)) do
  if seq ~= done then update = 'SADD' end
end
redis.call(update, P .. 'pushes', id)
return { 'ok' }
