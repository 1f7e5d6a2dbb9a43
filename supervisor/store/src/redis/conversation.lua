local context = ARGV[1]
local run = redis.call('HGET', key('c', context), 'run')
if not run then return {} end
local found = { run }
for _, list in ipairs(redis.call('SMEMBERS', key('l', context))) do
  found[#found + 1] = list
  found[#found + 1] = redis.call('LRANGE', list_key(context, list), 0, -1)
end
return found
