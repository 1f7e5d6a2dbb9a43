-- A page of tasks, newest first: each member of the index and its record. ARGV: scope, upper and lower bound, limit, phases.
local scope, upper, lower, limit = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

-- Compares bytes, as the index does. Lua's own comparison depends on the locale.
local function before(a, b)
  for index = 1, math.min(#a, #b) do
    local x, y = string.byte(a, index), string.byte(b, index)
    if x ~= y then return x > y end
  end
  return #a > #b
end

local members = {}
for phase = 5, #ARGV do
  local found = redis.call('ZREVRANGEBYLEX', P .. 'x:' .. ARGV[phase] .. ':' .. scope, upper, lower, 'LIMIT', 0, limit)
  for _, member in ipairs(found) do members[#members + 1] = member end
end
table.sort(members, before)
local page = {}
for index = 1, math.min(limit, #members) do
  page[#page + 1] = members[index]
  page[#page + 1] = redis.call('HGET', key('t', string.sub(members[index], 17)), 'record')
end
return page
