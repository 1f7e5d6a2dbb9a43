-- The health of a CaipeSupervisor for Argo CD, with the rules of kstatus in the same order: InProgress is Progressing,
-- Failed is Degraded, Current is Healthy.
local health = { status = "Progressing", message = "Waiting for the operator" }

if obj.metadata.deletionTimestamp ~= nil then
  health.message = "Pending deletion"
  return health
end

local status = obj.status
if status == nil then
  return health
end

-- The conditions describe observedGeneration, which is -1 before the first reconcile.
if status.observedGeneration == nil or status.observedGeneration ~= obj.metadata.generation then
  return health
end

local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end

-- The conditions Reconciling and Stalled exist only while they are true.
local reconciling = conditions.Reconciling
if reconciling ~= nil and reconciling.status == "True" then
  health.message = reconciling.message
  return health
end
local stalled = conditions.Stalled
if stalled ~= nil and stalled.status == "True" then
  health.status = "Degraded"
  health.message = stalled.message
  return health
end

local ready = conditions.Ready
if ready ~= nil then
  health.message = ready.message
  if ready.status == "True" then
    health.status = "Healthy"
  end
end
return health
