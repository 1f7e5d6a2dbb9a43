local handled = redis.call('HGET', key('t', ARGV[1]), 'handled') or '0'
local found = {}
for _, message in ipairs(redis.call('XRANGE', key('m', ARGV[1]), whole(tonumber(handled) + 1), '+')) do
  found[#found + 1] = { string.match(message[1], '^%d+'), message[2][2], message[2][4] }
end
return found
