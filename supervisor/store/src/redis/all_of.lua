-- The hashes of the tasks in a set, or of one task. ARGV: set or empty, task, kinds.
local tasks = { ARGV[2] }
if ARGV[1] ~= '' then tasks = redis.call('SMEMBERS', P .. ARGV[1]) end
local found = {}
for _, id in ipairs(tasks) do
  local hashes = redis.call('HGETALL', key(ARGV[3], id))
  for index = 1, #hashes, 2 do
    found[#found + 1] = id
    found[#found + 1] = hashes[index]
    found[#found + 1] = hashes[index + 1]
    found[#found + 1] = ARGV[4] ~= '' and redis.call('HGET', key(ARGV[4], id), hashes[index]) or ''
  end
end
return found
