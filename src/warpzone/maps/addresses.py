"""Where the game keeps what a flight over a stage changes."""

PLAYER_STATE = 0x0E
IN_CONTROL = 8
ENEMY_TYPE = 0x16
FLOAT_STATE = 0x1D
X_SPEED = 0x57
ENEMY_PAGE = 0x6E
ENEMY_X = 0x87
Y_SPEED = 0x9F
Y_HIGH = 0xB5
Y = 0xCE
AREA_DATA = 0xE7
SPRITES = 0x200
SPRITES_END = 0x300
Y_FORCE = 0x433
COLOUR_TURN = 0x6D4
SCREEN_PAGE = 0x71A
SCREEN_X = 0x71C
SPRITE_0_CHECK = 0x722
DATA_OFFSET = 0x72C
LOOP_COMMAND = 0x745
AREA_TYPE = 0x74E
AREA_INDEX = 0x74F
#: Where the next pipe or vine leads: area (type in bits 5 and 6), page, and how to arrive.
NEXT_AREA = 0x750
NEXT_PAGE = 0x751
ARRIVAL = 0x752
STAGE = 0x75C
WORLD = 0x75F
AREA = 0x760
TASK = 0x772
PLAYING = 3
SCREEN_OFF = 0x774
STAR_TIMER = 0x79F
PRELEVEL_TIMER = 0x7A0
TIME = 0x7F8

#: The slot of the flag on its pole, and its type.
FLAG_SLOT = 5
FLAG = 0x30
#: The byte that ends an area's data.
END_OF_DATA = 0xFD
