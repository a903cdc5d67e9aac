-- The index functions, second part: texts that several records need. It follows states.lua.
--
-- A copy keeps only a patch, and the number of the state to whose text it belongs, the owner. This one counts its
-- followers. A text stays in the hash of its group until its last follower is gone, even if its own record is gone.
local texts = {}

-- Note that another state needs the text of this one, which has to live as long.
function texts.follow(c, owner)
  local key = group_key(c, owner)
  local count = tonumber(redis.call('HGET', key, followers_field(owner)) or 0)
  redis.call('HSET', key, followers_field(owner), decimal(count + 1))
  if c.retention > 0 then redis.call('PEXPIRE', key, lifetime(c)) end
end

-- Note that a state that needed the text of this one is gone. With the last one goes a text without a state.
function texts.unfollow(c, owner)
  local key = group_key(c, owner)
  local count = tonumber(redis.call('HGET', key, followers_field(owner)) or 0)
  if count > 1 then
    redis.call('HSET', key, followers_field(owner), decimal(count - 1))
  else
    redis.call('HDEL', key, followers_field(owner), text_field(owner))
  end
end

-- Store the text of a state as its differences from that of another state, if that one has a text of its own, or an equal
-- one, that lives as long. A text that others share stays.
function texts.store_patch(c, number, other, patch)
  local state, base = read_state(c, number), read_state(c, other)
  if state.owner > 0 or number < c.floor or not base.record or base.owner > 0 and patch_of(base) ~= '' then return end
  local owner = base.owner > 0 and base.owner or other
  if owner == number or is_aging(c, owner) or patched(text_of(base), patch) ~= text_of(state)
    or redis.call('HEXISTS', group_key(c, number), followers_field(number)) == 1 then return end
  texts.follow(c, owner)
  rewrite_state(c, number, shared_record(state, patch, owner))
end
