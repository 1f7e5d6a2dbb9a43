-- The owner of a conversation, empty if it has none, and when it was last written. ARGV: context.
local stored = redis.call('HMGET', key('c', ARGV[1]), 'owner', 'touched')
return { stored[1] or '', stored[2] or '' }
