-- One step. ARGV: bound of tasks or empty, bound of conversations or empty, busy conversations to skip, size.
-- Returns the removed tasks and conversations, the conversations to skip, and whether there may be more.
local skip, size = tonumber(ARGV[3]), tonumber(ARGV[4])
local tasks, conversations, more = 0, 0, 0

local function oldest(index, bound, from)
  local found = redis.call('ZRANGEBYLEX', index, '-', bound, 'LIMIT', from, size)
  if #found == size then more = 1 end
  return found
end

if ARGV[1] ~= '' then
  for _, phase in ipairs({ 'completed', 'failed', 'canceled' }) do
    for _, member in ipairs(oldest(P .. 'x:' .. phase .. ':a', ARGV[1], 0)) do
      local context = forget_task(string.sub(member, 17))
      tasks = tasks + 1
      if redis.call('HEXISTS', key('c', context), 'run') == 0 and not has_tasks(context, PHASES) then
        redis.call('UNLINK', key('c', context))
      end
    end
  end
end
if ARGV[2] ~= '' then
  for _, member in ipairs(oldest(P .. 'touched', ARGV[2], skip)) do
    local context = string.sub(member, 17)
    if has_tasks(context, { 'submitted', 'working' }) then
      skip = skip + 1
    else
      for _, phase in ipairs(PHASES) do
        for _, task in ipairs(redis.call('ZRANGE', P .. 'x:' .. phase .. ':c:' .. context, 0, -1)) do
          forget_task(string.sub(task, 17))
          tasks = tasks + 1
        end
      end
      for _, list in ipairs(redis.call('SMEMBERS', key('l', context))) do
        redis.call('UNLINK', list_key(context, list))
      end
      redis.call('UNLINK', key('l', context), key('c', context))
      redis.call('ZREM', P .. 'touched', member)
      conversations = conversations + 1
    end
  end
end
return { tasks, conversations, skip, more }
