#pragma once

#include <cstdint>
#include <string_view>

/// Where Super Mario Bros keeps what we look at. The same for every revision of the game.
namespace wz::ram {

inline constexpr int kSize = 2048;

inline constexpr uint16_t kPlayerState = 0x000E;   ///< which routine moves Mario, see PlayerState
inline constexpr uint16_t kEnemyActive = 0x000F;   ///< 5 slots, non-zero = in use
inline constexpr uint16_t kEnemyType = 0x0016;     ///< 5 slots
inline constexpr uint16_t kFloatState = 0x001D;    ///< 0 ground, 1 jump, 2 fall, 3 flagpole or vine
inline constexpr uint16_t kFacing = 0x0033;        ///< 1 right, 2 left
inline constexpr uint16_t kPlayerXSpeed = 0x0057;  ///< signed, 1/16 pixel per frame
inline constexpr uint16_t kPlayerXPage = 0x006D;   ///< high byte of x in the area
inline constexpr uint16_t kEnemyXPage = 0x006E;    ///< 5 slots
inline constexpr uint16_t kPlayerX = 0x0086;       ///< low byte of x in the area
inline constexpr uint16_t kEnemyX = 0x0087;        ///< 5 slots
inline constexpr uint16_t kPlayerYSpeed = 0x009F;  ///< signed, pixels per frame, negative = up
inline constexpr uint16_t kPlayerYHigh = 0x00B5;   ///< 0 above the screen, 1 on it, more = below
inline constexpr uint16_t kEnemyYHigh = 0x00B6;    ///< 5 slots
inline constexpr uint16_t kPlayerY = 0x00CE;       ///< pixels from the top, below 0 included
inline constexpr uint16_t kEnemyY = 0x00CF;        ///< 5 slots, pixels from the top
inline constexpr uint16_t kAreaData = 0x00E7;      ///< 2 bytes, where the area's objects are in ROM
inline constexpr uint16_t kSprites = 0x0200;       ///< 64 sprites of 4 bytes, as they are drawn
inline constexpr uint16_t kPlayerYOnScreen = 0x03B8;  ///< pixels from the top
inline constexpr uint16_t kPlayerYForce = 0x0433;     ///< fraction of the vertical speed
inline constexpr uint16_t kBlocks = 0x0500;           ///< two pages of 13 rows of 16 tiles
inline constexpr uint16_t kColorTurn = 0x06D4;        ///< which colour of a cycle coins have
inline constexpr uint16_t kLoopsCorrect = 0x06D9;     ///< right turns in the running maze section
inline constexpr uint16_t kLoopsPassed = 0x06DA;      ///< turns in the running maze section
inline constexpr uint16_t kChangeAreaTimer = 0x06DE;  ///< frames until a pipe or vine leads on
inline constexpr uint16_t kSwimming = 0x0704;         ///< non-zero under water
inline constexpr uint16_t kScreenXPage = 0x071A;      ///< high byte of the screen's left edge
inline constexpr uint16_t kScreenX = 0x071C;          ///< low byte of the screen's left edge
inline constexpr uint16_t kSpriteZeroCheck = 0x0722;  ///< whether the status bar is split off
inline constexpr uint16_t kAreaDataOffset = 0x072C;   ///< bytes of the area's objects read so far
inline constexpr uint16_t kLoopCommand = 0x0745;      ///< non-zero while a maze check is pending
inline constexpr uint16_t kAreaType = 0x074E;    ///< 0 water, 1 ground, 2 underground, 3 castle
inline constexpr uint16_t kAreaIndex = 0x074F;   ///< which map of that type is loaded
inline constexpr uint16_t kNextArea = 0x0750;    ///< where a pipe or vine leads: type << 5 | index
inline constexpr uint16_t kNextPage = 0x0751;    ///< and to which page of it
inline constexpr uint16_t kArrival = 0x0752;     ///< and how Mario arrives there; 2 = by pipe
inline constexpr uint16_t kPlayerSize = 0x0754;  ///< 0 tall, 1 small
inline constexpr uint16_t kPower = 0x0756;       ///< 0 small, 1 tall, 2 fire
inline constexpr uint16_t kLife = 0x075A;        ///< lives left; 0xFF = game over
inline constexpr uint16_t kHalfwayPage =
    0x075B;                                     ///< page that the stage is entered at; 0 = its door
inline constexpr uint16_t kStage = 0x075C;      ///< 0..3, as the status bar counts
inline constexpr uint16_t kWorld = 0x075F;      ///< 0..7
inline constexpr uint16_t kArea = 0x0760;       ///< like kStage, entry scenes counted too
inline constexpr uint16_t kGameMode = 0x0770;   ///< see GameMode
inline constexpr uint16_t kGameTask = 0x0772;   ///< step within the mode, see GameTask
inline constexpr uint16_t kScreenOff = 0x0774;  ///< non-zero while the picture is black
inline constexpr uint16_t kStarTimer = 0x079F;  ///< non-zero while invincible
inline constexpr uint16_t kPrelevelTimer = 0x07A0;  ///< how long the lives screen stays
inline constexpr uint16_t kRandom = 0x07A7;         ///< 7 bytes, stirred by every NMI
inline constexpr uint16_t kScore = 0x07DE;          ///< 6 decimal digits
inline constexpr uint16_t kCoins = 0x07ED;          ///< 2 decimal digits
inline constexpr uint16_t kTime = 0x07F8;           ///< 3 decimal digits

inline constexpr int kEnemySlots = 5;
inline constexpr uint8_t kGameOverLife = 0xFF;
inline constexpr uint8_t kOnFlagpole = 3;  ///< kFloatState while sliding down

enum GameTask : uint8_t { kLoadingTask = 0, kPlayingTask = 3 };

enum GameMode : uint8_t { kTitle = 0, kPlaying = 1, kWorldOver = 2, kGameOver = 3 };

enum PlayerState : uint8_t {
  kEnterStage = 0x00,
  kClimbVine = 0x01,
  kEnterSidePipe = 0x02,
  kEnterPipe = 0x03,
  kSlideFlagpole = 0x04,
  kWalkToCastle = 0x05,
  kDead = 0x06,
  kEnterArea = 0x07,
  kInControl = 0x08,
  kDying = 0x0B,
};

enum EnemyType : uint8_t {
  kBowser = 0x2D,
  kPowerUp = 0x2E,
  kFlag = 0x30,          ///< as it hangs on its pole, in the slot after the last enemy's
  kFlagpoleFlag = 0x31,  ///< as an enemy's slot shows it
};

struct NamedAddress {
  std::string_view name;
  uint16_t address;
};

/// The map by name, for those who are not C++.
inline constexpr NamedAddress kAddresses[] = {
    {"player_state", kPlayerState},
    {"enemy_active", kEnemyActive},
    {"enemy_type", kEnemyType},
    {"float_state", kFloatState},
    {"facing", kFacing},
    {"player_x_speed", kPlayerXSpeed},
    {"player_x_page", kPlayerXPage},
    {"enemy_x_page", kEnemyXPage},
    {"player_x", kPlayerX},
    {"enemy_x", kEnemyX},
    {"player_y_speed", kPlayerYSpeed},
    {"player_y_high", kPlayerYHigh},
    {"enemy_y_high", kEnemyYHigh},
    {"player_y", kPlayerY},
    {"enemy_y", kEnemyY},
    {"area_data", kAreaData},
    {"sprites", kSprites},
    {"player_y_on_screen", kPlayerYOnScreen},
    {"player_y_force", kPlayerYForce},
    {"blocks", kBlocks},
    {"color_turn", kColorTurn},
    {"loops_correct", kLoopsCorrect},
    {"loops_passed", kLoopsPassed},
    {"change_area_timer", kChangeAreaTimer},
    {"swimming", kSwimming},
    {"screen_x_page", kScreenXPage},
    {"screen_x", kScreenX},
    {"sprite_zero_check", kSpriteZeroCheck},
    {"area_data_offset", kAreaDataOffset},
    {"loop_command", kLoopCommand},
    {"area_type", kAreaType},
    {"area_index", kAreaIndex},
    {"next_area", kNextArea},
    {"next_page", kNextPage},
    {"arrival", kArrival},
    {"player_size", kPlayerSize},
    {"power", kPower},
    {"life", kLife},
    {"halfway_page", kHalfwayPage},
    {"stage", kStage},
    {"world", kWorld},
    {"area", kArea},
    {"game_mode", kGameMode},
    {"game_task", kGameTask},
    {"screen_off", kScreenOff},
    {"star_timer", kStarTimer},
    {"prelevel_timer", kPrelevelTimer},
    {"random", kRandom},
    {"score", kScore},
    {"coins", kCoins},
    {"time", kTime},
};

}  // namespace wz::ram
