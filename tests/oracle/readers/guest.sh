# In a guest: mounts each filesystem of the table that follows this script, all on one disk, and says how that went:
#   name rw|ro|norecovery|refused [experimental]
# A column of bits for the log asks for a log that is dirty and has these bits in features_log_incompat.
K=/mnt/d
try() { # OPTIONS DEVICE
  mount -t xfs -o "$1" "$2" "$K" 2>/dev/null || return 1
  case $1 in rw*) echo x >"$K/written-here" && sync "$K" || { umount "$K"; return 1; };; esac
  umount "$K"
}
dirty() { # OPTIONS DEVICE BITS
  mount -t xfs -o "rw$1" "$2" "$K" || return 1
  mkdir "$K/left-behind"
  xfs_io -x -c 'shutdown -f' "$K"
  umount "$K"
  xfs_db -x -c 'sb 0' -c "write -d features_log_incompat $3" "$2" >/dev/null 2>&1
}
while read -r name start size rtstart rtsize bits; do
  device=$(losetup -f --show -o "$start" --sizelimit "$size" /dev/vda) || { echo "$name no-loop-device"; continue; }
  more='' rt=''
  if [ "$rtsize" != 0 ]; then
    rt=$(losetup -f --show -o "$rtstart" --sizelimit "$rtsize" /dev/vda)
    more=",rtdev=$rt"
  fi
  if [ "$bits" != - ]; then dirty "$more" "$device" "$bits" || echo "$name not-dirty"; fi
  dmesg -C
  if try "rw$more" "$device"; then result=rw
  elif try "ro$more" "$device"; then result=ro
  elif try "ro,norecovery$more" "$device"; then result=norecovery
  else result=refused
  fi
  dmesg | grep -q EXPERIMENTAL && result="$result experimental"
  echo "$name $result"
  losetup -d "$device"
  [ -z "$rt" ] || losetup -d "$rt"
done <<'TABLE'
